import { expect, test } from "vitest";
import { startOfPayload } from "../../../src/gateway/body/unpacking.ts";
import { residentBytes } from "../../kit/floods.ts";
import { lzEncode } from "../../kit/lz.ts";

test("peeks at lz-string texts leak no memory", () => {
  const text = `[${'{"event":"a"},'.repeat(6_000)}{}]`;
  const packed = Buffer.from(lzEncode(text));
  const peek = () => startOfPayload(packed, "identity", "lz64").toString();
  expect(text.startsWith(peek())).toBe(true);
  expect(peek().length).toBe(16_384);
  for (let warm = 0; warm < 500; warm++) peek();
  const before = residentBytes(process.pid);
  // Each peek writes through blocks of 16, 64 and 256 KiB.
  for (let peeks = 0; peeks < 4_000; peeks++) peek();
  expect(residentBytes(process.pid) - before).toBeLessThan(80 * 1_048_576);
});
