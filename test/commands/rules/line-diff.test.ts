import fc from "fast-check";
import { expect, test } from "vitest";
import { changedLines, compareLines } from "../../../src/commands/rules/line-diff.ts";

const lines = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 12 });

/** The length of the longest common subsequence, by trying every pair of lines. */
function longestCommon(one: readonly string[], other: readonly string[]): number {
  const [first, ...rest] = one;
  if (first === undefined) return 0;
  const found = other.indexOf(first);
  const without = longestCommon(rest, other);
  if (found === -1) return without;
  return Math.max(without, 1 + longestCommon(rest, other.slice(found + 1)));
}

test("compareLines returns both texts, and as many unchanged lines as possible", () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const compared = compareLines(before, after);
      const of = (...signs: string[]) =>
        compared.filter(([sign]) => signs.includes(sign)).map(([, line]) => line);
      expect(of(" ", "-")).toEqual(before);
      expect(of(" ", "+")).toEqual(after);
      expect(of(" ")).toHaveLength(longestCommon(before, after));
    }),
  );
});

test("compareLines shows large different texts as a whole, within a second", () => {
  const of = (letter: string) => Array.from({ length: 20_000 }, (_, n) => `${letter}${n}`);
  const startMs = performance.now();
  expect(compareLines(of("a"), of("b"))).toHaveLength(40_000);
  expect(performance.now() - startMs).toBeLessThan(1_000);
});

test("changedLines shows two lines around each change", () => {
  const text = (changed: readonly number[]) =>
    Array.from({ length: 20 }, (_, n) => (changed.includes(n) ? `new ${n}` : `${n}`)).join("\n");
  expect(changedLines(text([]), text([5, 15]))).toEqual([
    "  3",
    "  4",
    "- 5",
    "+ new 5",
    "  6",
    "  7",
    "…",
    "  13",
    "  14",
    "- 15",
    "+ new 15",
    "  16",
    "  17",
  ]);
  expect(changedLines("a\r\nb\r\n", "a\nb")).toEqual([]);
  expect(changedLines("", "a\n")).toEqual(["+ a"]);
});
