import { describe, expect, test } from "vitest";
import { connectTo, head, post, type Reply, startTestServer } from "../../kit/http-server.ts";

const origin = "https://shop.example";

function corsOf(reply: Reply): Record<string, string> {
  return Object.fromEntries(
    [...reply.headers].filter(([name]) => name.startsWith("access-control-")),
  );
}

const mirrored = {
  "access-control-allow-origin": origin,
  "access-control-allow-credentials": "true",
  "access-control-expose-headers": "Retry-After",
};

describe("CORS", () => {
  test.each([
    "/capture/",
    "/batch",
    "/e/",
    "/i/v0/e",
    "/track/",
    "/engage",
    "/flags/",
    "/static/array.js",
    "/nothing/at/all",
  ])("answers a preflight of %s with its origin and headers", async (path) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(
      head(
        { Origin: origin, "Access-Control-Request-Headers": "content-type, x-own" },
        `OPTIONS ${path}`,
      ),
    );
    const reply = await wire.reply();
    expect(reply.status).toBe(200);
    expect(corsOf(reply)).toEqual({
      ...mirrored,
      "access-control-allow-methods": "GET, POST, OPTIONS",
      "access-control-allow-headers": "content-type, x-own",
      "access-control-max-age": "86400",
    });
    expect(reply.headers.get("vary")).toBe("Origin, Access-Control-Request-Headers");
    await wire.ended();
    const next = await connectTo(server);
    next.write(post("{}", { Origin: origin }));
    expect(corsOf(await next.reply())).toEqual(mirrored);
  });

  test("adds headers to every kind of answer if the request has an origin", async () => {
    const server = await startTestServer();
    for (const request of [
      post("{}", { Origin: origin }),
      post("", { Origin: origin }),
      head({ Origin: origin }, "GET /capture/"),
      head({ Origin: origin }, "GET /nothing"),
    ]) {
      const wire = await connectTo(server);
      wire.write(request);
      expect(corsOf(await wire.reply())).toEqual(mirrored);
    }
    const wire = await connectTo(server);
    server.refusal = "unavailable";
    wire.write(post("{}", { Origin: origin }));
    const refused = await wire.reply();
    expect([refused.status, corsOf(refused)]).toEqual([503, mirrored]);
    wire.write(post("{}"));
    expect(corsOf(await wire.reply())).toEqual({});
    wire.write(head({}, "OPTIONS /capture"));
    expect(corsOf(await wire.reply())).toEqual({});
  });
});
