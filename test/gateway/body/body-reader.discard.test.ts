import { describe, expect, test } from "vitest";
import {
  bodyBytesMax,
  codeIn,
  connectTo,
  head,
  post,
  startTestServer,
  until,
} from "../../kit/http-server.ts";

const piece = Buffer.alloc(10_000, "x");
const chunk = Buffer.concat([
  Buffer.from(`${piece.length.toString(16)}\r\n`),
  piece,
  Buffer.from("\r\n"),
]);

describe("the size limit of a body", () => {
  test("accepts a body of exactly the limit", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(post(Buffer.alloc(bodyBytesMax, "x")));
    expect((await wire.reply()).status).toBe(200);
  });

  test("rejects a longer declared body with 413 after its last byte", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(head({ "Content-Length": String(piece.length * 12) }));
    for (let sent = 1; sent < 12; sent++) wire.write(piece);
    await until(() => wire.socket.writableLength === 0, "all but the last piece are sent");
    expect(server.finished).toEqual([]);
    expect(server.admission.bytes).toBe(0);
    wire.write(piece);
    const reply = await wire.reply();
    expect([reply.status, codeIn(reply)]).toEqual([413, "body_too_large"]);
    expect(JSON.parse(reply.body).detail).toBe(
      `The body has 120000 bytes, more than the maximum of ${bodyBytesMax}`,
    );
    wire.write(post("{}"));
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken).toHaveLength(1);
  });

  test("rejects a longer chunked body and releases its memory immediately", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(head({ "Transfer-Encoding": "chunked" }));
    for (let sent = 0; sent < 10; sent++) wire.write(chunk);
    await until(() => server.admission.bytes === bodyBytesMax, "the cap is in hand");
    wire.write(chunk);
    await until(() => server.admission.bytes === 0, "nothing is in hand");
    wire.write("0\r\n\r\n");
    const reply = await wire.reply();
    expect(codeIn(reply)).toBe("body_too_large");
    expect(JSON.parse(reply.body).detail).toBe(
      `The body has at least 110000 bytes, more than the maximum of ${bodyBytesMax}`,
    );
    await wire.ended();
  });

  test.each([
    ["declared length", head({ "Content-Length": "900000000" }), piece],
    ["received length", head({ "Transfer-Encoding": "chunked" }), chunk],
  ])(
    "closes the connection if the %s of a body exceeds twice the limit",
    async (_, request, part) => {
      const server = await startTestServer();
      const wire = await connectTo(server);
      wire.write(request);
      for (let sent = 0; sent <= 20; sent++) wire.write(part);
      const reply = await wire.reply();
      expect([reply.status, codeIn(reply)]).toEqual([413, "body_too_large"]);
      expect(reply.headers.get("connection")).toBe("close");
      await wire.ended();
      expect(server.finished).toEqual(["capture 413"]);
    },
  );
});
