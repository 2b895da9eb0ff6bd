// RFC 9110, 8.6: a 204 and a 304 have no Content-Length. A HEAD has the Content-Length of the GET.

import { describe, expect, test } from "vitest";
import {
  connectTo,
  head,
  startTestServer,
  type TestServer,
  type Wire,
} from "../../kit/http-server.ts";

const chunked = "2\r\n{}\r\n0\r\n\r\n";
const dateLine = /\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/;
const icon = head({}, "GET /favicon.ico");

async function heardOf(
  server: TestServer,
  bytes: Buffer | string,
): Promise<{ text: string; wire: Wire }> {
  const wire = await connectTo(server);
  let text = "";
  wire.socket.on("data", (part) => {
    text += part.toString("latin1");
  });
  wire.write(bytes);
  await wire.ended();
  return { text, wire };
}

const beacon = Buffer.concat([
  head({ "Transfer-Encoding": "chunked" }, "POST /e/?beacon=1"),
  Buffer.from(chunked),
]);
const recording = Buffer.concat([
  head({ "Transfer-Encoding": "chunked" }, "POST /s/?beacon=1"),
  Buffer.from(chunked),
]);

describe("an answer without a body", () => {
  test.each([
    ["a beacon", beacon, "e 204"],
    ["a beacon with a recording", recording, "recordings 204"],
    ["an icon", icon, "page 204"],
  ])("to %s has no Content-Length and closes the connection", async (_, bytes, finished) => {
    const server = await startTestServer();
    const { text } = await heardOf(server, bytes);
    expect(text).toMatch(/^HTTP\/1\.1 204 No Content\r\n(?:[\w-]+: [^\r\n]*\r\n)+\r\n$/);
    expect(text).toMatch(/\r\nConnection: close\r\n/);
    expect(text).toMatch(dateLine);
    expect(text).not.toMatch(/content-length|transfer-encoding/i);
    expect([server.finished, server.logged]).toEqual([[finished], []]);
  });

  test("closes the connection without answering later requests", async () => {
    const server = await startTestServer();
    const { text } = await heardOf(server, Buffer.concat([beacon, beacon, icon]));
    expect(text.split("HTTP/1.1").length - 1).toBeLessThanOrEqual(1);
    expect(server.taken.length).toBe(1);
  });

  test.each(["/flags/", "/e/", "/nothing-there", "/docs/errors"])(
    "to a HEAD of %s has the Content-Length of the GET",
    async (path) => {
      const server = await startTestServer();
      const whole = await heardOf(server, head({}, `${path === "/e/" ? "PUT" : "GET"} ${path}`));
      const { text } = await heardOf(server, head({}, `HEAD ${path}`));
      const length = /\r\ncontent-length: (\d+)\r\n/i;
      expect(Number(length.exec(text)?.[1])).toBe(Number(length.exec(whole.text)?.[1]));
      expect(text.match(/content-length/gi)?.length).toBe(1);
      expect(text).toMatch(/\r\nConnection: close\r\n/);
      expect(text).toMatch(dateLine);
      expect(text.endsWith("\r\n\r\n")).toBe(true);
      expect(text.indexOf("\r\n\r\n")).toBe(text.length - 4);
    },
  );
});
