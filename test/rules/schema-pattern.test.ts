import fc from "fast-check";
import { expect, test } from "vitest";
import { compilePattern, patternError } from "../../src/rules/schema-pattern.ts";

test.each([
  "^",
  "^$",
  "^[a-z0-9-]+$",
  "^\\d{4}-\\d{2}-\\d{2}$",
  "^[^@\\s]+@[^@]+$",
  "^https?://",
  "^[0-9a-f]{8}-[0-9a-f]{4}$",
  "^a*b*c*$",
  "^\\d+\\.\\d+\\.\\d+$",
  "^[\\w.]+$",
  "^.*$",
  "^\\$[-a]",
  "^😀+[^😀]",
  "^a{2,5}b\\\\$",
])("accepts %s", (pattern) => {
  expect(patternError(pattern)).toBeUndefined();
});

const ambiguous = "can match the same character";

test.each([
  ["a", "must begin with ^"],
  ["^(a+)+$", "( is not supported: groups and | are not allowed"],
  ["^a|b", "| is not supported"],
  ["^(?=a)", "not supported"],
  ["^[a-z]*[a-z]$", ambiguous],
  ["^a*a", ambiguous],
  ["^.*foo$", ambiguous],
  ["^a*b?a", ambiguous],
  ["^[^b]*\\s", ambiguous],
  ["^\\w+_", ambiguous],
  ["^\\d{1,3}0$", ambiguous],
  ["^a+?b", "without the last ?"],
  ["^a$b", "only at the end"],
  ["^a^b", "only at the beginning"],
  ["^[a", "Unterminated character class"],
  ["^a{2,1}", "numbers out of order"],
  ["^a{1001}", "exceeds the maximum of 1000"],
  ["^\\p{L}+", "the escape \\p is not supported"],
  ["^\\bx", "the escape \\b is not supported"],
  ["^\\u0041", "the escape \\u is not supported"],
  ["^\\1", "nvalid"],
])("rejects %s", (pattern, why) => {
  expect(patternError(pattern)).toContain(why);
});

const atom = fc.constantFrom(
  "a",
  "b",
  ".",
  "\\d",
  "\\w",
  "\\S",
  "[ab]",
  "[^a]",
  "[^\\d]",
  "[a-z-]",
  "\\.",
);
const bounds = {
  "": [1, 1],
  "*": [0, 999],
  "+": [1, 999],
  "?": [0, 1],
  "{0,50}": [0, 50],
  "{3}": [3, 3],
};
const part = fc.tuple(atom, fc.constantFrom(...(Object.keys(bounds) as (keyof typeof bounds)[])));

/** Returns the steps of an engine that tries the longest repetition first, and whether it matches. */
function backtrack(parts: readonly [string, keyof typeof bounds][], text: string) {
  const atoms = parts.map(([one]) => new RegExp(`^${one}$`, "u"));
  const characters = [...text];
  let steps = 0;
  const isAt = (index: number, at: number): boolean => {
    steps++;
    return at < characters.length && atoms[index]!.test(characters[at]!);
  };
  const matches = (index: number, at: number): boolean => {
    if (index === parts.length) return at === characters.length;
    const [min, max] = bounds[parts[index]![1]] as [number, number];
    let count = 0;
    while (count < max && isAt(index, at + count)) count++;
    for (; count >= min; count--) if (matches(index + 1, at + count)) return true;
    return false;
  };
  return { matches: matches(0, 0), steps };
}

test("an accepted pattern takes a number of steps that is linear in the text", () => {
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
      const pattern = `^${parts.map((one) => one.join("")).join("")}$`;
      if (patternError(pattern) !== undefined) return;
      accepted++;
      for (const repeated of ["a", "b", "1", "ab", "a1-", "😀", "aaab"]) {
        for (const end of ["", "!", "\n", "a", "."]) {
          const text = repeated.repeat(200) + end;
          const { matches, steps } = backtrack(parts, text);
          expect(steps).toBeLessThanOrEqual(2 * (text.length + 1) * (parts.length + 1));
          expect(compilePattern(pattern)(text)).toBe(matches);
        }
      }
    }),
    { numRuns: 3_000 },
  );
  expect(accepted).toBeGreaterThan(100);
});
