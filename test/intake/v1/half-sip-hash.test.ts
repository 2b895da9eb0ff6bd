// The hash of the uuids' table, against the vectors that Linux has for machines of 32 bits.

import { expect, test } from "vitest";
import { halfSipHash } from "../../../src/intake/v1/half-sip-hash.ts";

const key = Uint32Array.of(0x03020100, 0x07060504);
const words = Uint32Array.of(0xffffffff, 0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c);

test.each([
  [0, 0x5814c896],
  [1, 0x7e059ea6],
  [2, 0x577999b1],
  [3, 0x6b28096c],
  [4, 0x8b31d501],
])("of %i words it is HalfSipHash-1-3", (count, hash) => {
  expect(halfSipHash(key, words, { start: 1, count }) >>> 0).toBe(hash);
});
