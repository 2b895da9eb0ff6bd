import { expect, test } from "vitest";
import { codeIn, connectTo, head, post, startTestServer } from "./server-kit.ts";

test.each(["GET", "PUT", "PATCH", "DELETE", "TRACE"])("%s on an endpoint is 405", async (method) => {
  const server = await startTestServer();
  const wire = await connectTo(server);
  for (const path of ["/capture", "/capture/", "/batch", "/batch/"]) {
    wire.write(head({}, `${method} ${path}`));
    const reply = await wire.reply();
    expect([reply.status, codeIn(reply), reply.headers.get("allow")]).toEqual([
      405,
      "method_not_allowed",
      "POST, OPTIONS",
    ]);
  }
});

test("a HEAD is answered without a body", async () => {
  const server = await startTestServer();
  const wire = await connectTo(server);
  wire.write(head({}, "HEAD /capture/"));
  const known = await wire.reply(true);
  wire.write(head({}, "HEAD /nothing"));
  const unknown = await wire.reply(true);
  wire.write(post("{}"));
  expect([known.status, unknown.status, (await wire.reply()).status]).toEqual([405, 404, 200]);
  expect(Number(known.headers.get("content-length"))).toBeGreaterThan(0);
});

test.each(["/", "/e", "/captur", "/capture/x", "//capture/", "/CAPTURE/", "/batch//", "/%63apture/"])(
  "%s is nothing, whatever the method",
  async (path) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    for (const method of ["GET", "POST", "OPTIONS"]) {
      wire.write(Buffer.concat([head({ "Content-Length": "2" }, `${method} ${path}`), Buffer.from("{}")]));
      const reply = await wire.reply();
      expect([reply.status, codeIn(reply)]).toEqual([404, "not_found"]);
    }
    expect(server.finished).toEqual(["other 404", "other 404", "other 404"]);
    expect(server.taken).toEqual([]);
  },
);
