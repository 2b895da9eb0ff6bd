// Some SDKs request //batch/ if their host setting ends in a slash.

import { describe, expect, test } from "vitest";
import { codeIn, connectTo, head, startTestServer } from "../../kit/http-server.ts";

const body = Buffer.from('{"api_key":"k","event":"e","distinct_id":"u"}');

describe("a path with extra leading slashes", () => {
  test.each([
    ["//batch/", "batch"],
    ["//capture", "capture"],
    ["///e", "e"],
    ["//i/v0/e/?ip=1&_=1795330800000", "i_v0_e"],
    ["//engage/", "engage"],
    ["//i/v1/analytics/events", "v1"],
    [`${"/".repeat(1_000)}track/`, "track"],
  ])("accepts a POST to %s as %s", async (path, route) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(
      Buffer.concat([head({ "Content-Length": String(body.length) }, `POST ${path}`), body]),
    );
    expect((await wire.reply()).status).toBe(200);
    expect(server.finished).toEqual([`${route} 200`]);
    expect(server.taken).toHaveLength(1);
  });

  test("rejects wrong methods and empty bodies like the normal path", async () => {
    const server = await startTestServer();
    const asked = async (line: string, length: number) => {
      const wire = await connectTo(server);
      wire.write(head({ "Content-Length": String(length) }, line));
      const reply = await wire.reply();
      return [reply.status, codeIn(reply), reply.headers.get("allow")];
    };
    expect(await asked("GET //capture/", 0)).toEqual([400, "empty_body", undefined]);
    expect(await asked("PUT //capture/", 0)).toEqual([
      405,
      "method_not_allowed",
      "GET, POST, OPTIONS",
    ]);
    expect(await asked("GET //i/v1/analytics/events", 0)).toEqual([
      405,
      undefined,
      "POST, OPTIONS",
    ]);
    expect(server.taken).toEqual([]);
  });

  test("accepts a GET with data and a preflight like the normal path", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(
      head({ "Content-Length": "0" }, `GET //e/?data=${encodeURIComponent(body.toString())}`),
    );
    expect((await wire.reply()).status).toBe(200);
    const another = await connectTo(server);
    another.write(head({ Origin: "https://shop.example", "Content-Length": "0" }, "OPTIONS //e/"));
    expect((await another.reply()).headers.get("access-control-allow-origin")).toBe(
      "https://shop.example",
    );
    expect(server.finished).toEqual(["e 200", "e 200"]);
  });

  test.each([
    ["//flags/?v=2", "flags 200"],
    ["///array/phc_a/config", "config 200"],
    ["//docs/errors", "page 200"],
    ["//", "page 200"],
  ])("%s is answered like the normal path", async (path, finished) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(head({ "Content-Length": "0" }, `GET ${path}`));
    await wire.reply();
    expect(server.finished).toEqual([finished]);
  });

  test.each(["//captur/", "///x/capture/"])(
    "%s is answered 404 with a suggested path",
    async (path) => {
      const server = await startTestServer();
      const wire = await connectTo(server);
      wire.write(head({ "Content-Length": "0" }, `POST ${path}`));
      const reply = await wire.reply();
      expect([reply.status, codeIn(reply)]).toEqual([404, "not_found"]);
      expect(JSON.parse(reply.body).detail).toContain(`nothing at ${path}: `);
      expect(JSON.parse(reply.body).detail).toContain("; did you mean /capture/?");
    },
  );
});
