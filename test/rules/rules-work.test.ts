// The work that an accepted file can cause, so that a batch of any events is processed in time.

import { expect, test } from "vitest";
import { compileRules } from "../../src/rules/compile.ts";
import { stepsMax } from "../../src/rules/limits.ts";
import { parseRules } from "../../src/rules/parse.ts";
import { changeSteps, innerGlobSteps, stepsOf } from "../../src/rules/rules-work.ts";
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
  return stepsOf(parsed.rules.rules).total;
}

const list = (count: number, of: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => of(index)).join(", ");

test("each rule, condition, glob and path is a step, and changes are several", () => {
  const cases: readonly (readonly [rule: string, steps: number])[] = [
    ["drop: true", 1],
    ["match: { lane: live, bot: true }, quarantine: true", 3],
    ["match: { sdk: [web, js], sdk_version: 1.*, properties: { a: 1 } }, sample: 0.5", 6],
    [
      'match: { properties: { a: { like: [x, "y*", "*z*"] }, b: { like: q } } }, drop: true',
      1 + 2 + 1 + innerGlobSteps,
    ],
    ['match: { event: ["a*", "b*", "*c*"] }, remove: [a, b]', 1 + 2 + innerGlobSteps + 2],
    ["keep_only: [a, b]", 1 + changeSteps],
    ["rename: a", 1 + changeSteps],
    ["hash: [a], cut: { b: 1, c: 1 }, remove: [$set]", 1 + 4 * changeSteps],
    [`set: { a: 1, b: "${"x".repeat(97)}" }`, 1 + 2 * changeSteps + 5],
  ];
  for (const [rule, steps] of cases) expect(stepsOfText(rules(1, () => rule)), rule).toBe(steps);
});

test("a file with too many steps is rejected at its slowest rule, with the steps of rules", () => {
  const conditions = (count: number) =>
    `match: { properties: { ${list(count, (at) => `p${at}: 1`)} } }, drop: true`;
  const most = stepsMax - 2 - 10;
  expect(errorsOf(rules(2, (index) => conditions(index === 0 ? 10 : most)))).toEqual([]);
  expect(errorsOf(rules(2, (index) => conditions(index === 0 ? 11 : most)))).toEqual([
    `3:5 the rules take up to ${stepsMax + 1} steps for an event (r1 ${1 + most}, r0 12); the maximum is ${stepsMax}, so that no batch times out. Name the events of a rule in match.event, use exact names or globs with one *, and do the same with fewer rules and paths`,
  ]);
});

test("many rules for names, conditions of all events and globs are accepted together", () => {
  const named = (at: number) => `match: { event: [n${at}, m${at}] }, remove: [a, b, c]`;
  const conditional = (at: number) => `match: { properties: { p: ${at} } }, remove: [q${at}]`;
  const globs = `match: { event: [${list(10, (at) => `"*g${at}*h*"`)}] }, drop: true`;
  const text = rules(121, (at) => {
    if (at === 120) return globs;
    return at < 100 ? named(at) : conditional(at);
  });
  expect(errorsOf(text)).toEqual([]);
});

test("rules for different names do not add up, except those of names that rules give", () => {
  const paths = list(10, (at) => `p${at}`);
  const hashing = (index: number) => `match: { event: [a${index}, b${index}] }, hash: [${paths}]`;
  const steps = 1 + 10 * changeSteps;
  expect(stepsOfText(rules(100, hashing))).toBe(steps);
  const renamed = (count: number) =>
    rules(2 * count, (index) =>
      index < count ? `match: { event: x${index} }, rename: a${index + count}` : hashing(index),
    );
  expect(stepsOfText(renamed(2))).toBe(1 + changeSteps + 2 * steps);
  expect(errorsOf(renamed(3))[0]).toMatch(
    /^5:5 the rules take up to \d+ steps for an event \(r3 51, r4 51, r5 51, …\)/,
  );
  const withGlob = rules(2, (index) => hashing(index).replace("a0", '"a*"'));
  expect(stepsOfText(withGlob)).toBe(1 + 2 * steps);
});

test("of the names that no rule gives, the one with the most steps counts", () => {
  const text = rules(4, (index) =>
    index === 0
      ? "match: { event: [a, b] }, rename: c"
      : `match: { event: ${"abc"[index - 1]} }, hash: [${list(index, (at) => `p${at}`)}]`,
  );
  expect(stepsOfText(text)).toBe(1 + changeSteps + (1 + 2 * changeSteps) + (1 + 3 * changeSteps));
});

test("globs read the first 200 characters of a text, whatever their size", () => {
  const patterns = new TextPatterns(["*-secret"]);
  for (const character of ["x", "é", "😀"]) {
    expect(patterns.matches(`${character.repeat(193)}-secret`)).toBe(true);
    expect(patterns.matches(`${character.repeat(194)}-secret`)).toBe(false);
  }
});

test("the work for an event depends on what the rules do, and on its bytes if they read members", () => {
  const workOf = (text: string, bytes: number): number => {
    const parsed = parseRules(text);
    if ("errors" in parsed) throw new Error(parsed.errors[0]!.message);
    const cookieless = { projectId: "p", rootDomainOf: () => "" };
    const context = { version: 1, secret: Buffer.from("secret"), cookieless };
    return compileRules(parsed.rules, context).workOf(bytes, 1);
  };
  const perEvent = (text: string): number => workOf(text, 0);
  const perByte = (text: string): number => workOf(text, 1) - workOf(text, 0);
  const one = (body: string): string => rules(1, () => body);
  const cookieless = "privacy: { cookieless: true }\n";
  const none = "rules: []\n";

  expect([perEvent(none), perByte(none)]).toEqual([0, 0]);
  expect(perEvent(one("drop: true"))).toBeGreaterThan(0);
  expect(perEvent(one("hash: [a]"))).toBeGreaterThan(perEvent(one("cut: { a: 1 }")));
  expect(perEvent(one("hash: [a, b]"))).toBeGreaterThan(perEvent(one("hash: [a]")));
  expect(perEvent(cookieless)).toBeGreaterThan(0);

  expect(perByte(one("match: { event: a }, drop: true"))).toBe(0);
  const schema = "schemas: [{ event: a, version: 1, mode: stamp, properties: {} }]\n";
  const cut = "privacy: { cut_fragment: true }\n";
  for (const text of [one("remove: [a]"), one("rename: a"), schema, cut, cookieless])
    expect(perByte(text), text).toBeGreaterThan(0);
  expect(perByte(one("keep_only: [a]"))).toBeGreaterThan(perByte(one("remove: [a]")));
});
