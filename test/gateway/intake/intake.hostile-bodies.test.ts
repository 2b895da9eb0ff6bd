// Bodies that are small when sent, large when inflated, and slow to process. The JavaScript heap
// must not grow.

import { constants, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { Answer, TestGateway } from "../../kit/gateway.ts";

const MIB = 1_048_576;

const asSet = await gatewayForFile();
const allowing = await gatewayForFile({
  server: asSet.nats,
  env: {
    PENSTOCK_REQUEST_EVENTS_MAX: "100000000",
    PENSTOCK_EXPANSION_MAX: "1000000",
    PENSTOCK_REQUEST_TIMEOUT_MS: "60000",
  },
});

async function costOf(
  gateway: TestGateway,
  body: Uint8Array,
): Promise<{ answer: Answer; heapBytes: number }> {
  const before = process.memoryUsage().heapTotal;
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().heapTotal);
  }, 5);
  const answer = await gateway.post("/batch/", body, { "content-encoding": "gzip" });
  clearInterval(watch);
  return { answer, heapBytes: Math.max(peak, process.memoryUsage().heapTotal) - before };
}

async function expectCheap(
  gateway: TestGateway,
  body: Uint8Array,
  expected: [status: number, code?: string],
) {
  const { answer, heapBytes } = await costOf(gateway, body);
  expect([answer.status, answer.json["code"]]).toEqual([expected[0], expected[1]]);
  expect(heapBytes).toBeLessThan(96 * MIB);
}

describe("a hostile body", () => {
  test.each([
    [
      "millions of empty objects under an escaped key",
      () => `{"\\u0061":1,"x":[${"{},".repeat(6 * MIB)}{}]}`,
    ],
    [
      "millions of numbers under an escaped key",
      () => `{"\\u0061":1,"x":[${"1,".repeat(9 * MIB)}1]}`,
    ],
    ["an array of millions of numbers", () => `[${"1,".repeat(9 * MIB)}1]`],
  ])("does not grow the heap: %s, without an API key", async (_title, json) => {
    const whole = Buffer.from(json());
    await expectCheap(asSet, gzipSync(whole), [413, "inflated_too_large"]);
    // The body compresses to an eighth, which is within the limit of a body without a key.
    const shrunkLess = gzipSync(whole, { strategy: constants.Z_HUFFMAN_ONLY });
    await expectCheap(asSet, shrunkLess, [401, "missing_api_key"]);
  });

  test.each([
    [
      "a batch of millions of items that are not events",
      (key: string) => `{"api_key":"${key}","batch":[${"1,".repeat(2 * MIB)}1]}`,
      [413, "too_many_events"],
      [200],
    ],
    [
      "an array of half a million items with an escaped key",
      (key: string) =>
        `[{"token":"${" ".repeat(200)}${key}"},${`{"token":"\\u0070${key.slice(1)}"},`.repeat(MIB / 2)}1]`,
      [413, "too_many_events"],
      [200],
    ],
    [
      "a distinct id of millions of numbers",
      (key: string) => `{"api_key":"${key}","event":"e","distinct_id":[${"1,".repeat(5 * MIB)}1]}`,
      [200],
      [200],
    ],
    [
      "an event of millions of numbers and one lone surrogate",
      (key: string) =>
        `{"api_key":"${key}","event":"\\ud800","distinct_id":"u","properties":{"x":[${"1,".repeat(5 * MIB)}1]}}`,
      [413, "event_too_large"],
      [413, "event_too_large"],
    ],
  ] satisfies [string, (key: string) => string, [number, string?], [number, string?]][])(
    "does not grow the heap: %s",
    { timeout: 120_000 },
    async (_title, json, expected, expectedWhereAllowed) => {
      const { key } = await asSet.project();
      const body = gzipSync(json(key));
      await expectCheap(asSet, body, expected);
      const statusOfEmpty = async () =>
        (await allowing.post("/batch/", { api_key: key, batch: [] })).status;
      await expect.poll(statusOfEmpty, { timeout: 30_000 }).toBe(200);
      await expectCheap(allowing, body, expectedWhereAllowed);
    },
  );
});
