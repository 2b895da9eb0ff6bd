import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ZstdFrames } from "../../../src/commands/import/input.ts";

const checked = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
const parts = ["", "a", "b".repeat(300_000), Array.from({ length: 9_000 }, Math.sin).join()];
const frames = parts.flatMap((text) => [
  zstdCompressSync(Buffer.from(text)),
  zstdCompressSync(Buffer.from(text), checked),
]);
const skippable = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
const file = Buffer.concat([skippable, ...frames.slice(0, 5), skippable, ...frames.slice(5)]);

function framesIn(chunks: readonly Buffer[]): { whole: Buffer[]; isBetween: boolean } {
  const walker = new ZstdFrames();
  const whole: Buffer[] = [];
  let pieces: Buffer[] = [];
  for (const { bytes, isEnd } of chunks.flatMap((chunk) => [...walker.pieces(chunk)])) {
    pieces.push(bytes);
    if (isEnd) whole.push(Buffer.concat(pieces));
    if (isEnd) pieces = [];
  }
  return { whole, isBetween: walker.isBetween };
}

describe("the scanner of zstd files", () => {
  test.each([1, 2, 3, 7, 1_000, 65_536, file.length])(
    "finds each frame in chunks of %i bytes",
    (size) => {
      const chunks: Buffer[] = [];
      for (let at = 0; at < file.length; at += size) chunks.push(file.subarray(at, at + size));
      const { whole, isBetween } = framesIn(chunks);
      expect(whole.map((frame) => zstdDecompressSync(frame).toString())).toEqual(
        parts.flatMap((text) => [text, text]),
      );
      expect(isBetween).toBe(true);
    },
  );
});

test.each([1, 5, 40, file.length - 1])(
  "a zstd file that is truncated at byte %i ends within a frame",
  (at) => {
    expect(framesIn([file.subarray(0, at)]).isBetween).toBe(false);
  },
);

test("bytes that are not a zstd frame are rejected", () => {
  expect(() => framesIn([frames[0]!, Buffer.from("no frame")])).toThrow("incorrect header check");
});
