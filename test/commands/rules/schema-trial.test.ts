import { expect, test } from "vitest";
import { RulesTrial } from "../../../src/commands/rules/rules-trial.ts";
import { parseRules } from "../../../src/rules/parse.ts";
import { take } from "../../kit/items.ts";

const file = `rules:
  - name: no-bad
    match: { properties: { bad: true } }
    drop: true
  - name: to-order
    match: { event: buy }
    rename: order
    remove: [sum]
schemas:
  - event: order
    version: 2
    properties: { required: [total], additionalProperties: false, properties: { total: { type: number } } }
`;

test("a trial counts valid and wrong events of a schema after the rules, and their errors", () => {
  const parsed = parseRules(file);
  if ("errors" in parsed) throw new Error(JSON.stringify(parsed.errors));
  const trial = new RulesTrial(parsed.rules);
  const sent: [string, object][] = [
    ["order", { total: 1 }],
    ["buy", { total: 1, sum: 2 }],
    ["order", { total: "secret" }],
    ["buy", { sum: 2, ü: 1 }],
    ["order", { bad: true }],
    ["other", {}],
    ["order", {}],
  ];
  const batch = sent.map(([event, properties]) => ({ event, distinct_id: "u", properties }));
  const { lines } = take({ batch });
  trial.take(Buffer.from(lines.map((line) => `${line}\n`).join("")), "live");
  expect(trial.schemas.results).toEqual([
    {
      event: "order",
      version: 2,
      mode: "observe",
      valid: 2,
      invalid: 3,
      errors: new Map([
        ["total: must be a number", 1],
        ["total: is required", 2],
        ["ü: is not in the schema", 1],
      ]),
    },
  ]);
});
