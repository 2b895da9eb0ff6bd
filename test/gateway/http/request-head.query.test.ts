import { describe, expect, test } from "vitest";
import { codeIn, connectTo, head, startTestServer } from "../../kit/http-server.ts";

function postTo(path: string, body = "{}"): Buffer {
  return Buffer.concat([
    head({ "Content-Length": String(Buffer.byteLength(body)) }, `POST ${path}`),
    Buffer.from(body),
  ]);
}

describe("query parameters and beacons", () => {
  test.each([
    ["_=1700000000000", 1_700_000_000_000],
    ["ip=0&_=1700000000000&ver=1.449.0&compression=", 1_700_000_000_000],
    ["sent_at=1700000000001", 1_700_000_000_001],
    ["_=x&sent_at=1700000000001", 1_700_000_000_001],
    ["_=1577836800000", 1_577_836_800_000],
    ["_=1577836799999", Number.NaN],
    ["_=1700000000", Number.NaN],
    ["_=99999999999999999999", Number.POSITIVE_INFINITY],
    ["_=8640000000000001", Number.POSITIVE_INFINITY],
    ["_=-1700000000000", Number.POSITIVE_INFINITY],
    ["_=1700000000000.5", Number.POSITIVE_INFINITY],
    ["_=2024-01-01T00:00:00Z", Number.POSITIVE_INFINITY],
    ["_=x&sent_at=", Number.POSITIVE_INFINITY],
    ["_=x&sent_at=1700000000", Number.POSITIVE_INFINITY],
    ["_=", Number.NaN],
    ["_", Number.NaN],
    ["%5f=170000000000%30", 1_700_000_000_000],
    ["sent%5Fat=1700000000001", 1_700_000_000_001],
    ["x_=1700000000000", Number.NaN],
    ["", Number.NaN],
  ])("?%s sets the time of sending to %d", async (query, sentAtMs) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(postTo(`/e/?${query}`));
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken[0]!.exchange.querySentAtMs).toBe(sentAtMs);
  });

  const routes = {
    capture: "capture",
    batch: "batch",
    e: "e",
    "i/v0/e": "i_v0_e",
    track: "track",
    engage: "engage",
  };

  test.each(
    Object.entries(routes).flatMap(([path, route]) => [
      ["/", route, path] as const,
      ["", route, path] as const,
    ]),
  )("the endpoint is found with %j after its path: %s", async (slash, route, path) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(postTo(`/${path}${slash}`));
    expect((await wire.reply()).status).toBe(200);
    const { exchange } = server.taken[0]!;
    expect([exchange.path, exchange.isEngage]).toEqual([`/${path}${slash}`, route === "engage"]);
    expect(server.finished).toEqual([`${route} 200`]);
  });

  test("a beacon is answered 204 without a body", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    for (let count = 0; count < 2; count++) {
      wire.write(postTo("/e/?ip=0&beacon=1"));
      const reply = await wire.reply();
      expect([reply.status, reply.body, reply.headers.get("content-length")]).toEqual([
        204,
        "",
        undefined,
      ]);
    }
    wire.write(postTo("/e/?beacon=0"));
    expect((await wire.reply()).status).toBe(200);
    expect(server.finished).toEqual(["e 204", "e 204", "e 200"]);
  });

  test("the beacon flag may be percent-encoded", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(postTo("/e/?%62eacon=%31"));
    expect((await wire.reply()).status).toBe(204);
  });

  test("the connection is closed after a beacon without a stated length", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(head({}, "GET /e/?beacon=1&data=%7B%7D"));
    expect((await wire.reply()).status).toBe(204);
    await wire.ended();
    expect(server.taken[0]!.text).toBe("{}");
  });

  test("an error of a beacon is answered as usual", async () => {
    const server = await startTestServer();
    const next = await connectTo(server);
    server.refusal = "unavailable";
    next.write(
      Buffer.concat([
        head({ "Content-Length": "2", Origin: "https://shop.example" }, "POST /e/?beacon=1"),
        Buffer.from("{}"),
      ]),
    );
    const reply = await next.reply();
    expect([reply.status, codeIn(reply)]).toEqual([503, "unavailable"]);
    expect(reply.headers.get("access-control-allow-origin")).toBe("https://shop.example");
    server.refusal = undefined;
    next.write(
      Buffer.concat([
        head({ "Content-Length": "2", Origin: "https://shop.example" }, "POST /e/?beacon=1"),
        Buffer.from("{}"),
      ]),
    );
    const stored = await next.reply();
    expect([stored.status, stored.headers.get("access-control-allow-origin")]).toEqual([
      204,
      "https://shop.example",
    ]);
  });
});
