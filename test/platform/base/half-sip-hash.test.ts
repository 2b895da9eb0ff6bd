// The 32-bit vectors are from Linux. The 64-bit vectors are from the authors' program.

import { expect, test } from "vitest";
import { halfSipHash, halfSipHash64 } from "../../../src/platform/base/half-sip-hash.ts";

const key = Uint32Array.of(0x03020100, 0x07060504);
const words = Uint32Array.of(0xffffffff, 0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c);

test.each([
  [0, 0x5814c896],
  [1, 0x7e059ea6],
  [2, 0x577999b1],
  [3, 0x6b28096c],
  [4, 0x8b31d501],
])("the 32-bit hash is HalfSipHash-1-3 for %i words", (count, hash) => {
  expect(halfSipHash(key, words, { start: 1, count }) >>> 0).toBe(hash);
});

test.each([
  [0, 0x21d0a576, 0x2af72023],
  [1, 0xa0db24eb, 0x05ae8c71],
  [2, 0x31a8cd3d, 0x5f7aec1d],
  [3, 0x5ccc7755, 0x933fe7b3],
  [4, 0xb9c5d756, 0xc22e3e3d],
])("the 64-bit hash is HalfSipHash-1-3 for %i words", (count, ...hash) => {
  const into = new Int32Array(2);
  halfSipHash64(key, words.slice(1, 1 + count), into);
  expect([...into].map((word) => word >>> 0)).toEqual(hash);
});
