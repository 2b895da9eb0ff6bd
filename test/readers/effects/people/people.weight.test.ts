import { expect, test } from "vitest";
import { People } from "../../../../src/readers/effects/people/people.ts";
import { applyAll, Rows, type Step } from "./rows.ts";

function weightOf(...steps: Step[]): number {
  const people = new People();
  const placed = steps.map((step, sequence) => ({ ...step, place: { sequence } }));
  applyAll(people, new Rows(), placed);
  return people.cacheBytes;
}

test("two merged persons use less memory than two separate persons", () => {
  const person = { set: [["x", JSON.stringify("x".repeat(10_000))]] } as const;
  const two = ["a", "b"].map((distinctId) => ({ timeMs: 1, distinctId, person }));
  const before = weightOf(...two);
  expect(before).toBeGreaterThan(20_000);
  const link = { kind: "alias", from: "a", to: "b" } as const;
  expect(weightOf(...two, { timeMs: 1, distinctId: "a", link })).toBeLessThan(0.75 * before);
});
