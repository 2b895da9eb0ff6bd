import { expect, test } from "vitest";
import { findConflicts } from "../../src/rules/conflicts.ts";
import { parseRules } from "../../src/rules/parse.ts";
import type { Action, Rule } from "../../src/rules/rules-file.ts";
import { coversPattern, matchesPattern } from "../../src/rules/text-patterns.ts";

/** Returns the errors of a file whose rules are called r1, r2 and so on, as `line: message`. */
function conflicts(...rules: readonly string[]): string[] {
  const lines = rules.map((rule, index) => `  - { name: r${index + 1}, ${rule} }\n`);
  const parsed = parseRules(`rules:\n${lines.join("")}`);
  return "rules" in parsed ? [] : parsed.errors.map(({ line, message }) => `${line}: ${message}`);
}

const never = (name: string, verb: string, earlier: string) =>
  `rule ${name}: it never matches, because rule ${earlier} ${verb} the same events earlier: remove it or put it first`;

test("a rule after a rule that drops all of its events is a conflict", () => {
  const cases: readonly (readonly [earlier: string, later: string])[] = [
    ["drop: true", "remove: [a]"],
    ["drop: true", "match: { event: x }, remove: [a]"],
    ["match: { event: [x, y] }, drop: true", "match: { event: y }, remove: [a]"],
    ['match: { event: "ping*" }, drop: true', 'match: { event: ["ping", "ping-*"] }, hash: [a]'],
    ["match: { lane: live }, drop: true", "match: { lane: live, sdk: web }, sample: 0.5"],
  ];
  for (const [earlier, later] of cases)
    expect(conflicts(earlier, later), later).toEqual([`3: ${never("r2", "drops", "r1")}`]);
  expect(conflicts("quarantine: true", "remove: [a]")).toEqual([
    `3: ${never("r2", "quarantines", "r1")}`,
  ]);
});

test("a rule that can still match after an earlier drop is not a conflict", () => {
  const cases: readonly (readonly string[])[] = [
    ["match: { event: x }, drop: true", "remove: [a]"],
    ["match: { event: x }, drop: true", 'match: { event: "x*" }, remove: [a]'],
    ["match: { event: x, lane: live }, drop: true", "match: { event: x }, remove: [a]"],
    ["match: { event: x }, sample: 0.5", "match: { event: x }, remove: [a]"],
    ["mode: observe, drop: true", "remove: [a]"],
    ["drop: true", "mode: observe, remove: [a]"],
    // Rules may change the properties that a condition reads.
    ["match: { bot: true }, drop: true", "match: { bot: true, event: x }, set: { a: 1 }"],
    [
      "match: { properties: { a: 1 } }, drop: true",
      "set: { a: 1 }",
      "match: { properties: { a: 1 } }, remove: [b]",
    ],
    [
      'match: { properties: { a: { like: "*x" } } }, drop: true',
      'match: { event: x, properties: { a: { like: "*x" } } }, remove: [b]',
    ],
    // A rule in between gives other events the dropped name.
    [
      "match: { event: x }, drop: true",
      "match: { event: y }, rename: x",
      "match: { event: x }, remove: [a]",
    ],
  ];
  for (const rules of cases) expect(conflicts(...rules), rules.join(" | ")).toEqual([]);
});

test("two samples of the same events are not a conflict: the smaller share holds", () => {
  expect(conflicts("match: { event: x }, sample: 0.1", "sample: 0.5")).toEqual([]);
});

test("two actions of a rule that name the same property are a conflict", () => {
  expect(conflicts("remove: [a, b], set: { a: 1 }")).toEqual([
    "2: rule r1: remove and set both name a: set would add it again",
  ]);
  expect(conflicts("remove: [a], hash: [a]")).toEqual([
    "2: rule r1: remove and hash both name a: a removed property cannot be hashed",
  ]);
  expect(conflicts("keep_only: [a], hash: [b, $set.c]")).toEqual([
    "2: rule r1: keep_only removes b, so hash has no effect: add b to keep_only",
  ]);
  expect(conflicts("keep_only: [a], hash: [a], set: { b: 1 }, cut: { $set.c: 5 }")).toEqual([]);
});

test("a property that an earlier rule has removed from the same events is a conflict", () => {
  const removed =
    "3: rule r2: rule r1 has removed a before (remove), so hash has no effect: remove it here, or put this rule first";
  expect(conflicts("remove: [a]", "match: { event: x }, hash: [a]")).toEqual([removed]);
  expect(conflicts("keep_only: [b]", "cut: { a: 5 }")).toEqual([
    "3: rule r2: rule r1 has removed a before (keep_only), so cut has no effect: remove it here, or put this rule first",
  ]);
  expect(conflicts("match: { event: x }, remove: [a]", "hash: [a]")).toEqual([]);
  expect(conflicts("remove: [a]", "match: { event: x }, set: { a: x }", "hash: [a]")).toEqual([]);
  expect(conflicts("hash: [a]", "match: { event: x }, cut: { a: 5 }")).toEqual([
    "3: rule r2: rule r1 has hashed a before, so cut would shorten the hash: remove it here, or put this rule first",
  ]);
  expect(conflicts("match: { event: x }, hash: [a]", "cut: { a: 5 }")).toEqual([]);
  expect(conflicts("hash: [a]", "match: { event: x }, set: { a: redacted }")).toEqual([]);
  // Other events match the first condition only after the second rule.
  const pro = "match: { properties: { plan: pro } }";
  const trial = "match: { properties: { plan: trial } }, set: { plan: pro }";
  expect(conflicts(`${pro}, remove: [a]`, trial, `${pro}, hash: [a]`)).toEqual([]);
});

test("rules with the most names in each are compared quickly", () => {
  const names = Array.from({ length: 199 }, (_, at) => `e${at}`);
  const rules = Array.from({ length: 200 }, (_, at): Rule => {
    const action: Action =
      at % 2 === 0 ? { kind: "remove", paths: ["a"] } : { kind: "rename", event: "other" };
    const match = { event: [...names, `own${at}`] };
    return { name: `r${at}`, mode: "enforce", match, actions: [action] };
  });
  // With a comparison of each name with each other name, this takes minutes.
  expect(findConflicts(rules)).toEqual([]);
});

test("matchesPattern agrees with a regular expression over all short texts", () => {
  const texts = [""];
  for (const text of texts)
    if (text.length < 5) texts.push(...["a", "b", "*"].map((letter) => text + letter));
  const plain = texts.filter((text) => !text.includes("*"));
  for (const pattern of texts) {
    const expected = new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
    for (const text of plain) expect(matchesPattern(pattern, text)).toBe(expected.test(text));
  }
});

test("coversPattern is true only if every text of the other pattern matches", () => {
  expect(coversPattern("ping*", "ping-*")).toBe(true);
  expect(coversPattern("*", "a*b")).toBe(true);
  expect(coversPattern("a*b*c", "ab*bc")).toBe(true);
  expect(coversPattern("ping-*", "ping*")).toBe(false);
  expect(coversPattern("a", "a*")).toBe(false);
  expect(coversPattern("a*a", "a")).toBe(false);
});
