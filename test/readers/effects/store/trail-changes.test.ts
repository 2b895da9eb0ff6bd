import fc from "fast-check";
import { expect, test } from "vitest";
import { trailChanges } from "../../../../src/readers/effects/store/rows/flat-commit.ts";
import type { TrailEntry } from "../../../../src/readers/stream/resume.ts";

function entry(sequence: number, messageId = `m-${sequence}`): TrailEntry {
  return { sequence, messageId, storedAtMs: sequence };
}

const trail: fc.Arbitrary<TrailEntry[]> = fc
  .uniqueArray(fc.record({ sequence: fc.nat({ max: 12 }), copy: fc.constantFrom("a", "b") }), {
    selector: ({ sequence }) => sequence,
    maxLength: 12,
  })
  .map((some) => some.sort((one, other) => one.sequence - other.sequence))
  .map((some) => some.map(({ sequence, copy }) => entry(sequence, `${copy}-${sequence}`)));

test("the stored changes of message ids turn the earlier list into the later", () => {
  fc.assert(
    fc.property(trail, trail, (before, after) => {
      const { removed, added } = trailChanges(before, after);
      const stored = new Map(before.map((one) => [one.sequence, one]));
      for (const sequence of removed) expect(stored.delete(sequence)).toBe(true);
      for (const one of added) stored.set(one.sequence, one);
      const made = [...stored.values()].sort((one, other) => one.sequence - other.sequence);
      expect(made).toEqual(after);
    }),
  );
});

test("the stored changes of message ids are only the differences", () => {
  const before = [1, 2, 3, 4].map((sequence) => entry(sequence));
  const after = [entry(3), entry(4, "another"), entry(5)];
  expect(trailChanges(before, after)).toEqual({
    removed: [1, 2],
    added: [entry(4, "another"), entry(5)],
  });
  expect(trailChanges(after, after)).toEqual({ removed: [], added: [] });
});
