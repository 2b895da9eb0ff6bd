import { expect, test } from "vitest";
import { RuleCounts } from "../../../../src/gateway/projects/rules/rule-counts.ts";
import { RuleEffect } from "../../../../src/rules/compiled-rule.ts";
import { SchemaResult } from "../../../../src/rules/event-schema.ts";
import type { EventSchema, Rule } from "../../../../src/rules/rules-file.ts";

const drop: Rule = { name: "bots", mode: "observe", match: {}, actions: [{ kind: "drop" }] };
const order: EventSchema = { event: "order", version: 1, mode: "stamp", properties: {} };

function linesOf({ ruleSamples, schemaSamples }: RuleCounts): string[] {
  return [...ruleSamples, ...schemaSamples].map(
    ({ labels, value }) => `${Object.values(labels).join(" ")} ${value}`,
  );
}

test("the series of a rule exist from the start, one for each effect of its actions", () => {
  const counts = new RuleCounts();
  const shop = counts.of("shop");
  const actions: Rule["actions"] = [
    { kind: "sample", share: 0.5 },
    { kind: "remove", paths: ["a"] },
    { kind: "hash", paths: ["b"] },
  ];
  shop.ofRule({ ...drop, name: "some", mode: "enforce", actions });
  shop.ofSchema(order);
  expect(linesOf(counts)).toEqual([
    "shop some enforce sampled_out 0",
    "shop some enforce changed 0",
    "shop order stamp valid 0",
    "shop order stamp invalid 0",
  ]);
});

test("a counter continues in the next version of the rules, and each mode has its own", () => {
  const counts = new RuleCounts();
  const [first, next] = [counts.of("shop"), counts.of("shop")];
  first.ofRule(drop)[RuleEffect.dropped]! += 2;
  next.ofRule(drop)[RuleEffect.dropped]! += 3;
  next.ofRule({ ...drop, mode: "enforce" })[RuleEffect.dropped]! += 1;
  first.ofSchema(order)[SchemaResult.valid]! += 4;
  next.ofSchema({ ...order, version: 2 })[SchemaResult.valid]! += 5;
  counts.of("blog").ofRule(drop)[RuleEffect.dropped]! += 7;
  const expected = [
    "shop bots observe dropped 5",
    "shop bots enforce dropped 1",
    "blog bots observe dropped 7",
    "shop order stamp valid 9",
    "shop order stamp invalid 0",
  ];
  expect(linesOf(counts)).toEqual(expected);
  // A version without the rule does not remove its series.
  counts.of("shop").ofRule({ ...drop, name: "new" });
  expect(linesOf(counts)).toEqual(expect.arrayContaining(expected));
});

test("beyond the maximum, rules of all projects share a series", () => {
  const counts = new RuleCounts(2);
  const of = (project: string) => counts.of(project).ofRule(drop);
  for (const project of ["a", "b", "c", "d"]) of(project)[RuleEffect.dropped]!++;
  of("c")[RuleEffect.dropped]!++;
  expect(linesOf(counts)).toEqual([
    "a bots observe dropped 1",
    "b bots observe dropped 1",
    "(other) (other) observe dropped 3",
  ]);
});

test("a removed project leaves nothing", () => {
  const counts = new RuleCounts();
  counts.of("shop").ofRule(drop);
  counts.of("shop").ofSchema(order);
  counts.forget("shop");
  expect(linesOf(counts)).toEqual([]);
});
