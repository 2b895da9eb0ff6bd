// Small on the wire, large once inflated, and shaped to make the gateway work: each is answered for what it is, and leaves the JavaScript heap
// as it was, because no part of the body becomes an object before somebody with a key has sent it as an event.

import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answer, startTestGateway, type TestGateway, type TestProject } from "../kit/gateway.ts";

const MIB = 1_048_576;

let gateway: TestGateway;
let project: TestProject;

beforeAll(async () => {
  gateway = await startTestGateway();
  project = await gateway.project();
});

afterAll(async () => {
  await gateway.stop();
});

/** The answer, and by how much the heap's peak rose meanwhile, in bytes: what was allocated and perhaps collected again. */
async function costOf(json: string): Promise<{ answer: Answer; heapBytes: number }> {
  const body = gzipSync(json);
  const before = process.memoryUsage().heapTotal;
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().heapTotal);
  }, 5);
  const answer = await gateway.post("/batch/", body, { "content-encoding": "gzip" });
  clearInterval(watch);
  return { answer, heapBytes: Math.max(peak, process.memoryUsage().heapTotal) - before };
}

test.each([
  [
    "millions of empty objects under an escaped key, and no API key",
    () => `{"\\u0061":1,"x":[${"{},".repeat(6 * MIB)}{}]}`,
    401,
  ],
  [
    "millions of numbers under an escaped key, and no API key",
    () => `{"\\u0061":1,"x":[${"1,".repeat(9 * MIB)}1]}`,
    401,
  ],
  [
    "a batch of millions of items that are no events",
    () => `{"api_key":"${project.key}","batch":[${"1,".repeat(20 * MIB)}1]}`,
    200,
  ],
  [
    "a distinct id of millions of numbers",
    () => `{"api_key":"${project.key}","event":"e","distinct_id":[${"1,".repeat(5 * MIB)}1]}`,
    200,
  ],
  [
    "an event of millions of numbers and one lone surrogate",
    () =>
      `{"api_key":"${project.key}","event":"\\ud800","distinct_id":"u","properties":{"x":[${"1,".repeat(5 * MIB)}1]}}`,
    413,
  ],
])("%s", async (_title, json, status) => {
  const { answer, heapBytes } = await costOf(json());
  expect(answer.status).toBe(status);
  expect(heapBytes).toBeLessThan(96 * MIB);
});
