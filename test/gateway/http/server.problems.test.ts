import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type ErrorCode, errorTable } from "../../../src/platform/base/errors.ts";
import {
  bodyBytesMax,
  codeIn,
  connectTo,
  head,
  inflatedBytesMax,
  oneStored,
  post,
  startTestServer,
  type TestServer,
} from "../../kit/http-server.ts";

const openEnded = new Set(
  [post(""), head({}), post("", { "Content-Encoding": "gzip" })].map(String),
);

const found: [ErrorCode, Uint8Array, ((server: TestServer) => void)?][] = [
  ["empty_body", post("")],
  ["empty_body", head({})],
  ["empty_body", post(gzipSync(""), { "Content-Encoding": "gzip" })],
  ["empty_body", post("", { "Content-Encoding": "gzip" })],
  ["invalid_encoding", post("{}", { "Content-Encoding": "gzip" })],
  ["not_found", post("{}").fill("x", 6, 13)],
  ["empty_body", head({}, "GET /capture/")],
  ["method_not_allowed", head({}, "DELETE /batch")],
  [
    "method_not_allowed",
    Buffer.concat([head({ "Content-Length": "2" }, "PUT /capture"), Buffer.from("{}")]),
  ],
  ["body_too_large", post("x".repeat(bodyBytesMax + 1))],
  [
    "inflated_too_large",
    post(gzipSync("x".repeat(inflatedBytesMax + 1)), { "Content-Encoding": "gzip" }),
  ],
  ["unsupported_encoding", post("\x1f\x9d", { "Content-Encoding": "compress" })],
  ["overloaded", post("{}"), ({ admission }) => admission.take(2 * admission.bytesMax)],
  ["unavailable", post("{}"), (server) => Object.assign(server, { refusal: "unavailable" })],
  ["store_full", post("{}"), (server) => Object.assign(server, { refusal: "store_full" })],
];

describe("a problem", () => {
  test.each(found)("%s is answered with a problem document", async (code, request, prepare) => {
    const server = await startTestServer();
    prepare?.(server);
    const wire = await connectTo(server);
    wire.write(request);
    const reply = await wire.reply();
    const { status, title } = errorTable[code];
    expect(reply.status).toBe(status);
    expect(reply.headers.get("content-type")).toBe("application/problem+json");
    const { detail, ...rest } = JSON.parse(reply.body);
    expect(rest).toEqual({ type: `/docs/errors#${code}`, title, status, code });
    expect(detail).toMatch(/\S/);
    expect(reply.headers.get("allow")).toBe(status === 405 ? "GET, POST, OPTIONS" : undefined);
    expect(reply.headers.get("retry-after") ?? "").toMatch(status === 503 ? /^[1-5]$/ : /^$/);
    expect(server.taken).toEqual([]);

    server.admission.release(server.admission.bytes);
    server.refusal = undefined;
    if (isOpenEnded(request)) {
      expect(reply.headers.get("connection")).toBe("close");
      await wire.ended();
      return;
    }
    wire.write(post("{}"));
    expect((await wire.reply()).status).toBe(200);
  });

  test("has the detail and the item errors of the intake", async () => {
    const server = await startTestServer();
    const errors = [{ index: 3, code: "invalid_properties", detail: 'say "who"' }];
    server.answer = (exchange) =>
      exchange.answerProblem({
        code: "invalid_properties",
        detail: 'say "who"',
        errors,
        errorsTotal: 24,
      });
    const wire = await connectTo(server);
    wire.write(post("{}"));
    const reply = await wire.reply();
    expect(reply.status).toBe(400);
    expect(JSON.parse(reply.body)).toMatchObject({ detail: 'say "who"', errors, errors_total: 24 });
  });

  test("keeps the connection usable if the API key is unknown", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    server.answer = (exchange) =>
      exchange.answerProblem({ code: "unknown_api_key", detail: "no such key" });
    wire.write(post("{}"));
    expect((await wire.reply()).status).toBe(401);
    server.answer = (exchange) => exchange.answerStored(oneStored);
    wire.write(post("{}"));
    expect((await wire.reply()).status).toBe(200);
  });

  test("is a 503 and is logged if the intake throws", async () => {
    const server = await startTestServer();
    server.answer = () => {
      throw new Error("a secret of the code");
    };
    const wire = await connectTo(server);
    wire.write(post("{}"));
    const reply = await wire.reply();
    expect([reply.status, codeIn(reply)]).toEqual([503, "unavailable"]);
    expect(reply.body).not.toContain("secret");
    expect(server.logged).toHaveLength(1);
  });

  test("is only logged if the request already has an answer", async () => {
    const server = await startTestServer();
    server.answer = (exchange) => {
      exchange.answerStored(oneStored);
      exchange.answerProblem({ code: "timeout", detail: "late" });
    };
    const wire = await connectTo(server);
    wire.write(post("{}"));
    wire.write(post("{}"));
    expect((await wire.reply()).status).toBe(200);
    expect((await wire.reply()).status).toBe(200);
    expect(server.logged).toHaveLength(2);
    expect(server.finished).toEqual(["capture 200", "capture 200"]);
  });
});

function isOpenEnded(request: Uint8Array): boolean {
  const text = String(request);
  return openEnded.has(text) || /^(GET|DELETE) /.test(text);
}
