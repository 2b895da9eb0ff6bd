import { randomBytes } from "node:crypto";
import { Transform } from "node:stream";
import zlib, { brotliCompressSync, brotliDecompressSync, constants, gzipSync } from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import { inflateAtOnce } from "../../src/http/inflate.ts";
import { Turns } from "../../src/http/turns.ts";
import { codeIn, connectTo, post, startTestServer, until, type Wire } from "./server-kit.ts";

/** Turns that note down their numbers when they begin, and below zero when they are given up. */
function turnsOf(max: number) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const turns = new Turns(max, () => performance.now());
  const noted: number[] = [];
  const take = (number: number, inMs = 1_000) =>
    turns.take({
      deadlineMs: performance.now() + inMs,
      start: () => void noted.push(number),
      late: () => void noted.push(-number),
    });
  return { noted, take };
}

test("turns come in order, so many at a time, and who leaves the queue is passed over", async () => {
  const { noted, take } = turnsOf(2);
  const leave = [1, 2, 3, 4, 5].map((number) => take(number));
  expect(noted).toEqual([]);
  await Promise.resolve();
  expect(noted).toEqual([1, 2]);
  leave[2]!();
  leave[0]!();
  leave[0]!();
  await Promise.resolve();
  expect(noted).toEqual([1, 2, 4]);
  leave[3]!();
  leave[1]!();
  await Promise.resolve();
  expect(noted).toEqual([1, 2, 4, 5]);
});

test("a turn that is given up before it begins does not begin", async () => {
  const { noted, take } = turnsOf(1);
  take(1)();
  take(2);
  await Promise.resolve();
  expect(noted).toEqual([2]);
});

test("who waits hears of its deadline at it, though no turn ends, and those behind keep their place", async () => {
  const { noted, take } = turnsOf(1);
  const leave = take(1, 100);
  take(2, 200)();
  take(3, 300);
  take(4, 300);
  take(5, 400);
  await vi.advanceTimersByTimeAsync(299);
  expect(noted).toEqual([1]);
  await vi.advanceTimersByTimeAsync(1);
  expect(noted).toEqual([1, -3, -4]);
  leave();
  await Promise.resolve();
  expect(noted).toEqual([1, -3, -4, 5]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(noted).toEqual([1, -3, -4, 5]);
});

test("a turn that comes after the deadline, before the timer, is late too", async () => {
  const { noted, take } = turnsOf(1);
  take(1, 0);
  take(2);
  await Promise.resolve();
  await Promise.resolve();
  expect(noted).toEqual([-1, 2]);
});

test("bodies that wait for their turn are all inflated, whoever leaves meanwhile", async () => {
  const server = await startTestServer();
  const body = gzipSync("x".repeat(600_000));
  const wires = await Promise.all(Array.from({ length: 12 }, () => connectTo(server)));
  for (const wire of wires) wire.write(post(body, { "Content-Encoding": "gzip" }));
  for (const wire of wires.slice(6)) wire.socket.destroy();
  for (const wire of wires.slice(0, 6)) expect((await wire.reply()).status).toBe(200);
  await until(() => server.http.inflight() === 0, "all are done with");
  expect(server.admission.bytes).toBe(0);
});

/** Work on the pool that comes back when the test says so, in place of every Brotli decoder. */
function heldDecoders(): Transform[] {
  const held: Transform[] = [];
  const spy = vi.spyOn(zlib, "createBrotliDecompress").mockImplementation(() => {
    const decoder = new Transform({ transform: () => {} });
    held.push(decoder);
    return decoder as unknown as zlib.BrotliDecompress;
  });
  onTestFinished(() => void spy.mockRestore());
  return held;
}

/** Too much for the event loop. */
const held = post(brotliCompressSync(randomBytes(70_000)), { "Content-Encoding": "br" });
const waiting = post(gzipSync("x".repeat(600_000)), { "Content-Encoding": "gzip" });

async function sendAll(server: Parameters<typeof connectTo>[0], ...requests: Buffer[]): Promise<Wire[]> {
  const wires: Wire[] = [];
  for (const [place, request] of requests.entries()) {
    const wire = await connectTo(server);
    wire.write(request);
    wires.push(wire);
    await until(() => server.http.inflight() === place + 1, "it is here");
  }
  return wires;
}

test("a client that leaves keeps its turn until the pool is done with its body", async () => {
  const decoders = heldDecoders();
  const begun = vi.spyOn(zlib, "createGunzip");
  onTestFinished(() => void begun.mockRestore());
  const server = await startTestServer();
  const [first, second, leaver, third] = await sendAll(server, held, held, waiting, waiting);
  await until(() => decoders.length === 2, "two are at work");
  for (const wire of [first, second, leaver]) wire!.socket.destroy();
  await until(() => server.http.inflight() === 1, "three have left");
  await new Promise(setImmediate);
  expect(decoders.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  expect(begun).not.toHaveBeenCalled();

  decoders[1]!.push(Buffer.alloc(9));
  expect((await third!.reply()).status).toBe(200);
  expect(decoders.map(({ destroyed }) => destroyed)).toEqual([false, true]);
  // However the work ends.
  const [fourth, fifth] = [await connectTo(server), await connectTo(server)];
  fourth.write(held);
  await until(() => decoders.length === 3, "the next is at work");
  fifth.write(waiting);
  decoders[0]!.push(null);
  expect((await fifth.reply()).status).toBe(200);
  fourth.socket.destroy();
  await until(() => server.http.inflight() === 0, "nobody waits");
  decoders[2]!.destroy(new Error("damaged"));
  const last = await connectTo(server);
  last.write(waiting);
  expect((await last.reply()).status).toBe(200);
  expect(server.taken.length).toBe(3);
});

test("a body that waits for its turn is refused at its deadline, not when the turn comes", async () => {
  const decoders = heldDecoders();
  const server = await startTestServer({ requestTimeoutMs: 50 });
  const [first, second, third] = await sendAll(server, held, held, waiting);
  expect(codeIn(await third!.reply())).toBe("overloaded");
  expect(decoders.length).toBe(2);
  first!.socket.destroy();
  second!.socket.destroy();
});

/** Decoded in one go, so that a wrong guess at the window shows as a wrong answer, not only as time. */
test.each(Array.from({ length: 15 }, (_, place) => 10 + place))("a Brotli window of 2^%i", (bits) => {
  const text = randomBytes(20).toString("hex");
  const body = brotliCompressSync(text, {
    params: { [constants.BROTLI_PARAM_LGWIN]: bits, [constants.BROTLI_PARAM_QUALITY]: 5 },
  });
  const inflated = inflateAtOnce("br", body, 1_000_000);
  if (bits > 18) expect(inflated).toBeUndefined();
  else expect(inflated?.toString()).toBe(brotliDecompressSync(body).toString());
});
