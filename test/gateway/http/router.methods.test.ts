import { describe, expect, test } from "vitest";
import { codeIn, connectTo, head, startTestServer, until } from "../../kit/http-server.ts";

describe("the router", () => {
  test.each(["PUT", "PATCH", "DELETE", "TRACE", "pOsT"])(
    "returns 405 for %s on a capture path",
    async (method) => {
      const server = await startTestServer();
      for (const path of ["/capture", "/capture/", "/batch", "/e/", "/i/v0/e"]) {
        const wire = await connectTo(server);
        wire.write(head({}, `${method} ${path}`));
        const reply = await wire.reply();
        expect([reply.status, codeIn(reply), reply.headers.get("allow")]).toEqual([
          405,
          "method_not_allowed",
          "GET, POST, OPTIONS",
        ]);
        // The request does not state its length, so the server reads nothing after it.
        expect(reply.headers.get("connection")).toBe("close");
      }
    },
  );

  test("returns no body for HEAD", async () => {
    const server = await startTestServer();
    const askHead = async (path: string) => {
      const wire = await connectTo(server);
      wire.write(head({}, `HEAD ${path}`));
      const reply = await wire.reply(true);
      await until(() => wire.closed(), "the connection ends with the answer");
      return reply;
    };
    const known = await askHead("/capture/");
    const unknown = await askHead("/nothing");
    expect([known.status, unknown.status]).toEqual([405, 404]);
    expect([known.body, unknown.body]).toEqual(["", ""]);
  });

  test.each([
    "/x",
    "/captur",
    "/capture/x",
    "/x//capture/",
    "/CAPTURE/",
    "/batch//",
    "/%63apture/",
    "//captur/",
  ])("returns 404 for %s, but 200 for its preflight", async (path) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    for (const method of ["GET", "POST", "PUT"]) {
      wire.write(
        Buffer.concat([head({ "Content-Length": "2" }, `${method} ${path}`), Buffer.from("{}")]),
      );
      const reply = await wire.reply();
      expect([reply.status, codeIn(reply)]).toEqual([404, "not_found"]);
    }
    wire.write(head({ "Content-Length": "0" }, `OPTIONS ${path}`));
    const preflight = await wire.reply();
    expect([preflight.status, preflight.body]).toEqual([200, ""]);
    expect(server.finished).toEqual(["other 404", "other 404", "other 404", "other 200"]);
    expect(server.taken).toEqual([]);
  });

  test.each([
    ["/x/y/", "/x/y/"],
    ["/arrays/phc_0123456789abc/config", "/arrays/<key>/config"],
    ["/x_phc_secretkey123/y-phc_ab-cdefghijk", "/x_<key>/y-<key>"],
    ["/x/PHX_a*b'c}d/y", "/x/<key>/y"],
    ["/x/phc_a%2Fb%22/y", "/x/<key>/y"],
    ["/x/%70hc%5fsecret/y", "/x/<key>/y"],
    ["/x/%2570hc%255Fsecret/y", "/x/<key>/y"],
    ["/x/a1b2c3d4e5f6/y", "/x/<key>/y"],
    ["/x/api_key=demo/token:demo", "/x/api_key=<key>/token:<key>"],
    ["/array/de mo/config".replace(" ", "%20"), "/array/<key>/config"],
    ["/array/demo/nothing", "/array/<key>/nothing"],
    [`/${"x/".repeat(36)}phc_${"s".repeat(200)}`, `/${"x/".repeat(36)}<key>`],
    [`/${"x/".repeat(38)}phc_${"s".repeat(400)}`, `/${"x/".repeat(38)}<ke…`],
    ["/api/v1/analytics/something-else", "/api/v1/analytics/something-else"],
    ["/%63apturr", "/%63apturr"],
    [`/${"a".repeat(200)}`, `/${"a".repeat(79)}…`],
  ])("shows the path %s in the 404 answer as %s", async (path, named) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(head({ "Content-Length": "0" }, `POST ${path}?api_key=phc_0123456789abc`));
    const reply = await wire.reply();
    expect(JSON.parse(reply.body).detail).toBe(
      `There is nothing at ${named}: events go to /capture/ or /batch/`,
    );
    expect(reply.body.endsWith("}\n")).toBe(true);
  });
});
