import fc from "fast-check";
import { expect, test } from "vitest";
import { compareStamps, rankOf, stampOfOtherId } from "../../../src/readers/effects/stamp.ts";
import type { LinePlace } from "../../../src/readers/effects/types.ts";

const place: fc.Arbitrary<LinePlace> = fc.record({
  lane: fc.constantFrom("live", "historical"),
  epoch: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 36 ** 3 - 1 })),
  partition: fc.integer({ min: 0, max: 1_023 }),
  sequence: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.maxSafeNat()),
  line: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 36 ** 5 - 1 })),
});

function comparePlaces(one: LinePlace, other: LinePlace): number {
  if (one.lane !== other.lane) return one.lane === "historical" ? -1 : 1;
  for (const key of ["epoch", "partition", "sequence", "line"] as const)
    if (one[key] !== other[key]) return Math.sign(one[key] - other[key]);
  return 0;
}

test("property stamps with equal times sort by position", () => {
  fc.assert(
    fc.property(place, place, (one, other) => {
      const a = { timeMs: 7, rank: rankOf(one) };
      const b = { timeMs: 7, rank: rankOf(other) };
      const order = comparePlaces(one, other);
      expect(Math.sign(compareStamps(a, b))).toBe(order);
      expect(Math.sign(compareStamps(stampOfOtherId(a), b))).toBe(order === 0 ? 1 : order);
    }),
  );
});

test("property stamps sort by time, then by position", () => {
  const first = { timeMs: -62_167_219_200_000, rank: "z" };
  const second = { timeMs: 0, rank: "a" };
  expect(compareStamps(first, second)).toBeLessThan(0);
  expect(compareStamps(second, first)).toBeGreaterThan(0);
});
