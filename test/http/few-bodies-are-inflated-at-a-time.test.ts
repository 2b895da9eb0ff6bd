import { randomBytes } from "node:crypto";
import { brotliCompressSync, brotliDecompressSync, constants, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { inflateAtOnce } from "../../src/http/inflate.ts";
import { Turns } from "../../src/http/turns.ts";
import { connectTo, post, startTestServer, until } from "./server-kit.ts";

test("turns come in order, so many at a time, and who leaves the queue is passed over", async () => {
  const turns = new Turns(2);
  const begun: number[] = [];
  const leave = [0, 1, 2, 3, 4].map((number) => turns.take(() => void begun.push(number)));
  expect(begun).toEqual([]);
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  leave[2]!();
  leave[0]!();
  leave[0]!();
  await Promise.resolve();
  expect(begun).toEqual([0, 1, 3]);
  leave[3]!();
  leave[1]!();
  await Promise.resolve();
  expect(begun).toEqual([0, 1, 3, 4]);
});

test("a turn that is given up before it begins does not begin", async () => {
  const turns = new Turns(1);
  const begun: number[] = [];
  turns.take(() => void begun.push(0))();
  turns.take(() => void begun.push(1));
  await Promise.resolve();
  expect(begun).toEqual([1]);
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
