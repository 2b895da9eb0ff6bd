import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { learnedEventsMax } from "../../src/commands/rules/schema.ts";
import { slowItemBytesMax } from "../../src/gateway/intake/plain-form.ts";
import { schemaErrorsMax } from "../../src/records/verdict.ts";
import { pathCharsShownMax } from "../../src/rules/event-schema.ts";
import { schemaLevelsMax, schemaMembersMax } from "../../src/rules/limits.ts";
import { parseRules } from "../../src/rules/parse.ts";
import {
  enumForm,
  learnedNameCharsMax,
  learnedPropertiesMax,
} from "../../src/rules/schema-learner.ts";
import { patternBytesMax, patternError } from "../../src/rules/schema-pattern.ts";
import { schemaKeywords, schemaTypes } from "../../src/rules/schema-subset.ts";

const guide = readFileSync(new URL("../../docs/guides/schemas.md", import.meta.url), "utf8");

test("the guide has the limits of schemas and proposals", () => {
  const count = (value: number) => value.toLocaleString("en-US");
  for (const sentence of [
    `at most ${schemaErrorsMax} errors`,
    `at most ${pathCharsShownMax} characters of the property's path`,
    `more than ${schemaLevelsMax} levels deep, or with more than ${schemaMembersMax} keywords and properties`,
    `more than ${count(patternBytesMax)} bytes does not match`,
    `The ${learnedPropertiesMax} most frequent properties of the first ${count(learnedEventsMax)} events, if their names have 1 to ${learnedNameCharsMax} characters`,
    `there are at least ${enumForm.eventsMin}.`,
    `at most ${enumForm.valuesMax} different texts in at least ${enumForm.eventsMin} events`,
    `a word of at most ${enumForm.wordCharsMax} characters`,
    `by at least ${enumForm.peopleMin} distinct ids`,
  ])
    expect(guide).toContain(sentence);
});

test("the guide has the maximum size of a checked event", () => {
  expect(guide).toContain(`may have at most ${slowItemBytesMax / 1_048_576} MiB`);
});

test("the guide lists every keyword and every type", () => {
  const table = guide.slice(guide.indexOf("| Keyword |"), guide.indexOf("These differ from"));
  const named = [...table.matchAll(/`([A-Za-z]+)`/g)].map(([, name]) => name);
  for (const name of [...Object.keys(schemaKeywords), ...schemaTypes])
    expect(named).toContain(name);
  expect(named.filter((name) => !(name! in schemaKeywords || schemaTypes.includes(name!)))).toEqual(
    [],
  );
});

test("the examples of the guide are as the code has them", () => {
  const yaml = /```yaml\n([\s\S]*?)```/.exec(guide)![1]!.replaceAll(/^ {3}/gm, "");
  expect(parseRules(yaml)).toHaveProperty("rules");
  expect(patternError("^[a-z]+-\\d+$")).toBeUndefined();
  expect(patternError("^[a-z]*[a-z]$")).toBeDefined();
});
