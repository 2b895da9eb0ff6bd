// The work that an accepted file can cause, so that a batch of any events is processed in time.

import fc from "fast-check";
import { expect, test } from "vitest";
import { stepsMax } from "../../src/rules/limits.ts";
import { parseRules } from "../../src/rules/parse.ts";
import { GlobSet, matchesPattern } from "../../src/rules/pattern.ts";
import { stepsOf, stepsOfPart } from "../../src/rules/rules-work.ts";
import { TextPatterns } from "../../src/rules/text-patterns.ts";

function errorsOf(text: string): string[] {
  const parsed = parseRules(text);
  if ("rules" in parsed) return [];
  return parsed.errors.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

const rules = (count: number, of: (index: number) => string): string =>
  `rules:\n${Array.from({ length: count }, (_, index) => `  - { name: r${index}, ${of(index)} }\n`).join("")}`;

function stepsOfText(text: string): number {
  const parsed = parseRules(text);
  if ("errors" in parsed) throw new Error(parsed.errors[0]!.message);
  return stepsOf(parsed.rules.rules, parsed.rules.privacy).total;
}

test("a file with too many steps is rejected at its slowest rule, with the steps of rules", () => {
  const conditions = (count: number) =>
    `match: { properties: { ${Array.from({ length: count }, (_, at) => `p${at}: 1`).join(", ")} } }, drop: true`;
  const most = Math.floor((stepsMax - 2 * stepsOfPart.rule) / stepsOfPart.equals) - 10;
  expect(errorsOf(rules(2, (index) => conditions(index === 0 ? 10 : most)))).toEqual([]);
  const total = 2 * stepsOfPart.rule + (11 + most) * stepsOfPart.equals;
  const ofFirst = stepsOfPart.rule + 11 * stepsOfPart.equals;
  expect(errorsOf(rules(2, (index) => conditions(index === 0 ? 11 : most)))).toEqual([
    `3:5 the rules take up to ${total} steps for an event (r1 ${total - ofFirst}, r0 ${ofFirst}); the maximum is ${stepsMax}, so that no batch times out. Name the events of a rule in match.event, use exact names or globs with one *, and do the same in fewer rules`,
  ]);
});

test("rules for different names do not add up, except those of names that rules give", () => {
  const paths = Array.from({ length: 10 }, (_, at) => `p${at}`).join(", ");
  const hashing = (index: number) => `match: { event: [a${index}, b${index}] }, hash: [${paths}]`;
  expect(stepsOfText(rules(100, hashing))).toBe(stepsOfPart.rule + 10 * stepsOfPart.hash);
  const renamed = `${rules(5, (index) => `match: { event: x${index} }, rename: a${index}`)}${rules(5, hashing).replace("rules:\n", "").replaceAll("name: r", "name: q")}`;
  expect(errorsOf(renamed)[0]).toMatch(
    /^7:5 the rules take up to \d+ steps for an event \(q0 610, /,
  );
  expect(errorsOf(rules(2, (index) => hashing(index).replace("a0", '"a*"')))).toHaveLength(1);
});

test("globs of all rules count for each event", () => {
  const globs = (glob: string) => (index: number) =>
    `match: { event: ["${glob}${index}*", "only-${index}"] }, mode: observe, drop: true`;
  const withGlob = stepsOfPart.rule + stepsOfPart.ruleWithGlob;
  expect(stepsOfText(rules(3, globs("a")))).toBe(3 * (withGlob + stepsOfPart.glob));
  const inner = stepsOfPart.innerGlobs + 3 * stepsOfPart.innerGlobWord;
  expect(stepsOfText(rules(3, globs("*a")))).toBe(3 * withGlob + inner);
});

const glob = fc
  .tuple(fc.string({ unit: fc.constantFrom(..."ab*é"), maxLength: 40 }), fc.nat())
  .map(([text, at]) =>
    text.includes("*") ? text : `${text.slice(0, at % 40)}*${text.slice(at % 40)}`,
  );

test("globs read the first 200 characters of a text, whatever their size", () => {
  const patterns = new TextPatterns(["*-secret"]);
  for (const character of ["x", "é", "😀"]) {
    expect(patterns.matches(`${character.repeat(193)}-secret`)).toBe(true);
    expect(patterns.matches(`${character.repeat(194)}-secret`)).toBe(false);
  }
});

test("a set of globs finds those that match a text alone", () => {
  fc.assert(
    fc.property(
      fc.array(glob, { maxLength: 12 }),
      fc.string({ unit: fc.constantFrom(..."abéx"), maxLength: 12 }),
      (globs, text) => {
        const expected = globs.flatMap((one, index) => (matchesPattern(one, text) ? [index] : []));
        expect(new GlobSet(globs).find(text).toSorted((one, other) => one - other)).toEqual(
          expected,
        );
      },
    ),
    { numRuns: 3_000 },
  );
});
