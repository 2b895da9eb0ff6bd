// Each chunk of a body costs the same however little is in it, so one that comes in many tiny ones is ended before it is all read.

import { expect, test } from "vitest";
import { event, expectUnharmed, raw, request, startTarget, stored } from "./hostile-kit.ts";

function inChunksOf(chunkBytes: number, body: string): Buffer {
  const chunks = body.match(new RegExp(`.{1,${chunkBytes}}`, "gs")) ?? [];
  const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
  return request(`${framed}0\r\n\r\n`, ["Transfer-Encoding: chunked"]);
}

const long = (id: string, bytes: number): string => event(id).replace("{", `{"padding":"${"x".repeat(bytes)}",`);

test("an event that comes byte by byte is stored, also a long one in chunks of some dozens of bytes", async () => {
  const target = await startTarget();
  for (const [id, bytes] of [
    ["by bytes", inChunksOf(1, event("by bytes"))],
    ["by dozens", inChunksOf(48, long("by dozens", 200_000))],
  ] as const) {
    expect((await raw(target.port, [bytes])).statuses, id).toEqual([200]);
  }
  expect((await stored(target)).toSorted()).toEqual(["by bytes", "by dozens", "first"]);
  await expectUnharmed(target);
});

test("a long body in tiny chunks is 400, and what comes behind it is nothing", async () => {
  const target = await startTarget();
  for (const chunkBytes of [1, 8]) {
    const behind = request(event("behind"));
    const sent = Buffer.concat([inChunksOf(chunkBytes, long("tiny", 100_000)), behind]);
    expect((await raw(target.port, [sent])).statuses).toEqual([400]);
  }
  expect(await stored(target)).toEqual(["first"]);
  await expectUnharmed(target);
});
