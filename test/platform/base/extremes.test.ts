import { expect, test } from "vitest";
import { greatestOf, leastOf } from "../../../src/platform/base/extremes.ts";

test("the extremes of a million numbers are found", () => {
  const numbers = Array.from({ length: 1_000_000 }, (_, nth) => (nth * 7_919) % 1_000_003);
  numbers.push(-5, 2_000_000);
  expect([leastOf(numbers), greatestOf(numbers)]).toEqual([-5, 2_000_000]);
});

test("the extremes of an empty list equal those of Math.min and Math.max", () => {
  expect([leastOf([]), greatestOf([])]).toEqual([Math.min(), Math.max()]);
});
