import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import {
  peakBytes,
  residentBytes,
  type Sent,
  send,
  startSmallRequests,
  untilKeyIsKnown,
} from "../../kit/floods.ts";
import { key, natsWithProject, type TestWorkers, workersOn } from "../../kit/workers.ts";

const MIB = 1_048_576;
const clients = 40;
const budgetBytes = 64 * MIB;
const bodyBytesMax = 20 * MIB;
const inflatedBytesMax = 44 * MIB;
/** The additional memory of small requests: cached blocks, two decoders, and the heap. */
const besideBytesMax = budgetBytes / 8 + (42 + 16 + 2 * 17 + 64) * MIB;
/** Two scanners, for bodies in which every byte is structural. */
const indexBytesMax = 2 * 4 * inflatedBytesMax;
/**
 * The heap, and freed memory that the C library retains. It does not grow from one flood to the
 * next.
 */
const restingBytesMax = (64 + 64) * MIB;

function startGateway(nats: Awaited<ReturnType<typeof natsWithProject>>): Promise<TestWorkers> {
  const limits = {
    "--inflight-bytes-max": budgetBytes,
    "--body-bytes-max": bodyBytesMax,
    "--inflated-bytes-max": inflatedBytesMax,
    "--stream-bytes-max": 400 * MIB,
  };
  return workersOn(
    nats,
    ...Object.entries(limits).flatMap(([name, value]) => [name, String(value)]),
  );
}

function batchOf(bytes: number): Buffer {
  const event = (n: number) =>
    JSON.stringify({ event: "e", distinct_id: `d${n}`, properties: { x: "x".repeat(2_000) } });
  const count = Math.floor((bytes - 100) / (event(100_000).length + 1));
  return Buffer.from(
    `{"api_key":"${key}","batch":[${Array.from({ length: count }, (_, n) => event(n)).join(",")}]}`,
  );
}

async function flood(gateway: TestWorkers, bodyOf: (client: number) => [Uint8Array, string?]) {
  const small = startSmallRequests(`http://127.0.0.1:${gateway.port}`, key);
  const sent = await Promise.all(
    Array.from({ length: clients }, (_, client) => {
      const [body, coding] = bodyOf(client);
      return send(gateway.port, body, coding === undefined ? {} : { "Content-Encoding": coding });
    }),
  );
  return { sent, small: await small.stop(), peak: peakBytes(gateway.process.pid!) };
}

function countOf(sent: readonly Sent[], status: number): number {
  return sent.filter((one) => one.status === status).length;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 1]!;
}

test("small requests are answered while 40 clients send large bodies", {
  timeout: 120_000,
}, async () => {
  const gateway = await startGateway(await natsWithProject());
  const pid = gateway.process.pid!;
  await untilKeyIsKnown(gateway.port, key);
  const startBytes = residentBytes(pid);

  const large = batchOf(bodyBytesMax);
  const bodies = await flood(gateway, () => [large]);
  // On a busy machine the store may acknowledge large bodies too late.
  const admitted = bodies.sent.filter(
    ({ status, code }) => status === 200 || code === "timeout" || code === "unavailable",
  );
  expect(admitted.length).toBeGreaterThan(0);
  expect(countOf(bodies.sent, 200) + countOf(bodies.sent, 503)).toBe(clients);
  expect(bodies.small.stored / bodies.small.sent).toBeGreaterThan(0.95);
  expect(median(bodies.sent.map((one) => one.answerMs))).toBeLessThan(
    median(bodies.sent.map((one) => one.uploadMs)),
  );
  expect(bodies.peak).toBeLessThan(startBytes + budgetBytes + besideBytesMax);

  const over = Buffer.alloc(4 * inflatedBytesMax, " ");
  const structural = Buffer.from(`{"x":[${"{},".repeat(inflatedBytesMax / 3 - 10)}{}]}`);
  const window = { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 24 };
  const bombs: [Uint8Array, string][] = [
    [brotliCompressSync(over, { params: window }), "br"],
    [zstdCompressSync(over, { params: { [constants.ZSTD_c_windowLog]: 23 } }), "zstd"],
    [gzipSync(structural), "gzip"],
    [gzipSync(over), "gzip"],
    [deflateSync(over), "deflate"],
  ];
  const inflated = await flood(gateway, (client) => bombs[client % bombs.length]!);
  const judged = countOf(inflated.sent, 401) + countOf(inflated.sent, 413);
  expect(judged + countOf(inflated.sent, 503)).toBe(clients);
  expect(inflated.small.stored / inflated.small.sent).toBeGreaterThan(0.95);
  expect(inflated.peak).toBeLessThan(startBytes + budgetBytes + besideBytesMax + indexBytesMax);

  // Together, the bodies may exhaust the memory. Alone, each body is processed.
  for (const [bomb, coding] of bombs) {
    const { status } = await send(gateway.port, bomb, { "Content-Encoding": coding });
    expect([401, 413]).toContain(status);
  }

  const metrics = await gateway.metrics();
  expect(metrics.get("penstock_inflight_bytes")).toBe(0);
  expect(metrics.get("penstock_requests_inflight")).toBe(0);
  expect(gateway.process.exitCode).toBeNull();
  await expect
    .poll(() => residentBytes(pid), { timeout: 30_000 })
    .toBeLessThan(startBytes + restingBytesMax);
});
