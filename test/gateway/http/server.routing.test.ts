import { describe, expect, test } from "vitest";
import {
  bodyBytesMax,
  codeIn,
  connectTo,
  head,
  inflightBytesMax,
  startTestServer,
  type TestServer,
  until,
} from "../../kit/http-server.ts";

const full = (inflightBytesMax * 9) / 8 + 1;

const states: [string, (server: TestServer) => void, string][] = [
  [
    "without its store",
    (server) => Object.assign(server, { refusal: "unavailable" }),
    "unavailable",
  ],
  ["out of memory for bodies", ({ admission }) => admission.take(full), "overloaded"],
  ["draining", (server) => void server.http.drain(5_000), "draining"],
];

const requests: [string, Record<string, string>, number, string][] = [
  ["PUT /capture", {}, 405, "method_not_allowed"],
  ["PATCH /batch/", { "Content-Length": String(bodyBytesMax + 1) }, 405, "method_not_allowed"],
  ["DELETE /i/v0/ai/batch", {}, 405, "method_not_allowed"],
  ["HEAD /capture/", {}, 405, ""],
  ["GET /capture/", {}, 400, "empty_body"],
  ["GET /e/?ip=0&data=", { "Content-Encoding": "rot13" }, 400, "empty_body"],
  ["GET /i/v1/analytics/events", { "Content-Encoding": "rot13" }, 405, "method_not_allowed"],
  ["PUT /i/v1/analytics/events/", {}, 405, "method_not_allowed"],
  ["HEAD /i/v1/analytics/events", {}, 405, ""],
  ["POST /nothing", {}, 404, "not_found"],
  ["PUT /flags/", { "Content-Length": String(bodyBytesMax + 1) }, 405, "method_not_allowed"],
  ["GET /static/none.js", {}, 404, "not_found"],
  ["GET /flags/", {}, 200, ""],
  ["OPTIONS /capture/", {}, 200, ""],
];

describe("a request that stores nothing", () => {
  test.each(
    states.flatMap(([state, prepare, code]) =>
      requests.map(([line, ...request]) => [state, line, prepare, code, ...request] as const),
    ),
  )(
    "gets its usual answer while the gateway is %s: %s",
    async (_, line, prepare, code, headers, status, expected) => {
      const server = await startTestServer();
      const [wire, storing] = [await connectTo(server), await connectTo(server)];
      const before = server.admission.bytes;
      prepare(server);
      wire.write(
        Buffer.concat([
          head(headers, line),
          Buffer.alloc(Number(headers["Content-Length"] ?? 0), "x"),
        ]),
      );
      const reply = await wire.reply(line.startsWith("HEAD"));
      const said =
        expected === "" ? expected : (JSON.parse(reply.body).code ?? JSON.parse(reply.body).error);
      expect([line, reply.status, said]).toEqual([line, status, expected]);
      expect(reply.headers.has("retry-after")).toBe(false);
      storing.write(Buffer.concat([head({ "Content-Length": "2" }), Buffer.from("{}")]));
      expect(codeIn(await storing.reply())).toBe(code);
      server.admission.release(server.admission.bytes - before);
    },
  );

  test("evicts no body when it is rejected for its method", async () => {
    const server = await startTestServer({
      bodyBytesMax: 900_000,
      peek: () => ({ projectId: undefined, lane: undefined }),
    });
    const [growing, wrong] = [await connectTo(server), await connectTo(server)];
    growing.write(
      Buffer.concat([head({ "Content-Length": "900000" }), Buffer.alloc(300_000, "x")]),
    );
    await until(() => server.admission.bytes === 300_000, "a part of it is in hand");
    server.admission.take(full - 300_000);
    wrong.write(head({}, "PUT /capture/"));
    expect((await wrong.reply()).status).toBe(405);
    wrong.socket.destroy();
    expect(server.admission.bytes).toBe(full);
    server.admission.release(full - 300_000);
    growing.write(Buffer.alloc(600_000, "x"));
    expect((await growing.reply()).status).toBe(200);
  });
});
