import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { readFrames } from "../../kit/gateway.ts";
import { event, expectUnharmed, key, raw, request, startTarget } from "../../kit/hostile.ts";
import { withClient } from "../../kit/workers.ts";

function encoded(coding: string, body: Uint8Array | string): Buffer {
  return request(body, [
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Content-Encoding: ${coding}`,
  ]);
}

const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

function withWrongSum(gzipped: Buffer): Buffer {
  return gzipped.fill(1, gzipped.length - 8, gzipped.length - 4);
}

function written(id: string, fields: string): Buffer {
  return request(`{"api_key":"${key}","event":"e","distinct_id":"${id}",${fields}}`);
}

const megaKey = "k".repeat(1_000_000);

type Case = readonly [bytes: (id: string) => Buffer, status: number, code?: string];

const cases: Record<string, Case> = {
  "JSON declared as gzip": [(id) => encoded("gzip", event(id)), 400, "invalid_encoding"],
  "gzip in gzip": [(id) => encoded("gzip", gzipSync(gzipSync(event(id)))), 400, "invalid_encoding"],
  "two codings": [
    (id) => encoded("gzip, gzip", gzipSync(gzipSync(event(id)))),
    415,
    "unsupported_encoding",
  ],
  "truncated gzip": [
    (id) => encoded("gzip", gzipSync(event(id)).subarray(0, -4)),
    400,
    "invalid_encoding",
  ],
  "gzip with an extra byte": [
    (id) => encoded("gzip", Buffer.concat([gzipSync(event(id)), Buffer.from("x")])),
    200,
  ],
  "gzip with zero bytes after it": [
    (id) => encoded("gzip", Buffer.concat([gzipSync(event(id)), Buffer.alloc(5)])),
    200,
  ],
  "gzip in two members": [
    (id) =>
      encoded(
        "gzip",
        Buffer.concat([gzipSync(event(id).slice(0, 9)), gzipSync(event(id).slice(9))]),
      ),
    200,
  ],
  "gzip with a wrong checksum": [
    (id) => encoded("gzip", withWrongSum(gzipSync(event(id)))),
    400,
    "invalid_encoding",
  ],
  "large truncated gzip": [
    (id) =>
      encoded(
        "gzip",
        gzipSync(event(id, { properties: { x: "x".repeat(2_000_000) } })).subarray(0, -9),
      ),
    400,
    "invalid_encoding",
  ],
  "br declared as gzip": [
    (id) => encoded("gzip", brotliCompressSync(event(id))),
    400,
    "invalid_encoding",
  ],
  "gzip declared as br": [(id) => encoded("br", gzipSync(event(id))), 400, "invalid_encoding"],
  "gzip declared as deflate": [
    (id) => encoded("deflate", gzipSync(event(id))),
    400,
    "invalid_encoding",
  ],
  "JSON declared as zstd": [(id) => encoded("zstd", event(id)), 400, "invalid_encoding"],
  "two frames of zstd": [
    (id) =>
      encoded("zstd", Buffer.concat([zstdCompressSync(event(id)), zstdCompressSync(event(id))])),
    400,
    "invalid_json",
  ],
  "gzip without Content-Encoding": [(id) => request(gzipSync(event(id))), 200],
  "JavaScript's own names": [
    (id) =>
      written(
        id,
        `"__proto__":{"a":1},"properties":{"__proto__":{"b":1},"constructor":{"prototype":{"c":1}},"toString":1}`,
      ),
    200,
  ],
  "an escaped name of JavaScript's own": [
    (id) => written(id, `"properties":{"\\u005f_proto__":{"b":1},"toString":2}`),
    200,
  ],
  "an event named __proto__": [
    (id) => request(JSON.stringify({ api_key: key, event: "__proto__", distinct_id: id })),
    200,
  ],
  "a key named __proto__": [
    (id) => request(JSON.stringify({ api_key: "__proto__", event: "e", distinct_id: id })),
    401,
    "unknown_api_key",
  ],
  "a key named constructor": [
    (id) => request(JSON.stringify({ token: "constructor", event: "e", distinct_id: id })),
    401,
    "unknown_api_key",
  ],
  "98 levels in the properties": [(id) => written(id, `"properties":{"x":${nested(98)}}`), 200],
  "100,000 levels": [(id) => written(id, `"properties":{"x":${nested(100_000)}}`), 400, "too_deep"],
  "100,000 levels in an event to be normalised": [
    (id) => written(id, `"properties":{"\\ud800":1,"x":${nested(100_000)}}`),
    400,
    "too_deep",
  ],
  "100,000 levels and nothing else": [() => request(nested(100_000)), 401, "missing_api_key"],
  "a million levels that are never closed": [
    () => request("[".repeat(1_000_000)),
    400,
    "invalid_json",
  ],
  "the last of two distinct ids": [
    (id) => written("the first of two", `"distinct_id":"${id}"`),
    200,
  ],
  "the last of two keys": [
    (id) => request(`{"api_key":"none","event":"e","distinct_id":"${id}","api_key":"${key}"}`),
    200,
  ],
  "huge numbers": [
    (id) => written(id, `"properties":{"a":1e999999,"b":${"9".repeat(400)},"c":1e-9999999}`),
    200,
  ],
  "a number of 100,000 digits": [
    (id) => written(id, `"properties":{"b":${"9".repeat(100_000)}}`),
    400,
    "number_too_long",
  ],
  "a timestamp of 400 digits": [(id) => written(id, `"timestamp":${"9".repeat(400)}`), 200],
  "a timestamp of 1,000 digits": [
    (id) => written(id, `"timestamp":${"9".repeat(1_000)}`),
    400,
    "number_too_long",
  ],
  "a name of 1 MB among the properties": [
    (id) => written(id, `"properties":{"${megaKey}":1}`),
    200,
  ],
  "a name of 1 MB next to the event's": [(id) => written(id, `"${megaKey}":1`), 200],
  "a key of 1 MB": [
    (id) => request(`{"api_key":"${megaKey}","event":"e","distinct_id":"${id}"}`),
    401,
    "unknown_api_key",
  ],
  "a key of 1 MB, escaped": [
    (id) => request(`{"api_key":"${"\\u006b".repeat(200_000)}","event":"e","distinct_id":"${id}"}`),
    401,
    "unknown_api_key",
  ],
  "a key after 1 MB of white space": [
    (id) =>
      request(`{"api_key":"${" ".repeat(1_000_000)}${key}","event":"e","distinct_id":"${id}"}`),
    401,
    "unknown_api_key",
  ],
  zeros: [() => request(Buffer.alloc(1_000)), 400, "invalid_json"],
};

test("each hostile body is stored as it was sent or not at all", {
  timeout: 120_000,
}, async () => {
  const target = await startTarget();
  const heard = await Promise.all(
    Object.entries(cases).map(async ([name, [bytes]]) => {
      const { statuses, text } = await raw(target.port, [bytes(name)]);
      return [name, [statuses[0], /"code":"(\w+)"/.exec(text.slice(0, 600))?.[1]]] as const;
    }),
  );
  // A 200 may contain the code of a warning.
  const answers = heard.map(([name, [status, code]]) => [
    name,
    status === 200 ? [200, undefined] : [status, code],
  ]);
  expect(Object.fromEntries(answers)).toEqual(
    Object.fromEntries(
      Object.entries(cases).map(([name, [, status, code]]) => [name, [status, code]]),
    ),
  );
  const frames = await withClient(target.nats, (connection) =>
    readFrames(connection, "penstock.live.*.shop"),
  );
  const lines = frames.flatMap(({ text }) => text.trimEnd().split("\n"));
  const events = new Map(lines.map((line) => [String(JSON.parse(line).distinct_id), line]));
  const expected = Object.entries(cases).filter(([, [, status]]) => status === 200);
  expect([...events.keys()].toSorted()).toEqual(
    ["first", ...expected.map(([name]) => name)].toSorted(),
  );
  expect(lines).toHaveLength(expected.length + 1);
  const own = JSON.parse(events.get("JavaScript's own names")!).properties;
  expect(Object.keys(own)).toEqual(
    expect.arrayContaining(["__proto__", "constructor", "toString"]),
  );
  expect(events.get("an escaped name of JavaScript's own")).toMatch(/"toString":2/);
  expect(events.get("huge numbers")).toContain(
    `"a":1e999999,"b":${"9".repeat(400)},"c":1e-9999999`,
  );
  expect(events.get("98 levels in the properties")).toContain(nested(98));
  await expectUnharmed(target);
});
