import fc from "fast-check";
import { expect, test } from "vitest";
import { type CompiledRules, compileRules } from "../../src/rules/compile.ts";
import { SchemaResult } from "../../src/rules/event-schema.ts";
import { parseRules } from "../../src/rules/parse.ts";
import type { SchemaMode } from "../../src/rules/rules-file.ts";
import { take } from "../kit/items.ts";
import {
  compiled,
  context,
  type Json,
  type Schema,
  type Stamp,
  schemaFile,
  stampBy,
  yamlOf,
} from "./schema-kit.ts";

function stampOf(schema: Schema, properties: string): Stamp | undefined {
  return stampBy(compiled(schemaFile(schema)), properties);
}

const order: Schema = {
  type: "object",
  required: ["total", "plan"],
  properties: {
    total: { type: "number", minimum: 0 },
    plan: { enum: ["free", "pro"] },
    items: { type: "array", maxItems: 2, items: { type: "object", required: ["sku"] } },
    country: { type: ["string", "null"], pattern: "^[A-Z]{2}$" },
    name: { type: "string", minLength: 1, maxLength: 3 },
  },
  additionalProperties: false,
};

test("an error names the property and the rule, and never the value", () => {
  const errors = (json: string) => stampOf(order, json)?.errors;
  expect(errors('{"total":1,"plan":"pro","$lib":"web","token":"t"}')).toBeUndefined();
  expect(errors("{}")).toEqual(["total: is required", "plan: is required"]);
  expect(errors('{"total":-1,"plan":"gold","country":"Germany","name":"","extra":1}')).toEqual([
    "total: must be at least 0",
    'plan: must be one of "free", "pro"',
    "country: must match ^[A-Z]{2}$",
    "name: must have at least 1 characters",
    "extra: is not in the schema",
  ]);
  expect(errors('{"total":"1","plan":"pro","items":[{},{"sku":1},3]}')).toEqual([
    "total: must be a number",
    "items: must have at most 2 items",
    "items[0].sku: is required",
    "items[2]: must be an object",
  ]);
  const many = `{"total":1,"plan":"pro",${[1, 2, 3, 4, 5, 6, 7].map((n) => `"x${n}":1`).join(",")}}`;
  expect(errors(many)).toHaveLength(5);
  const long = `{"total":1,"plan":"pro","${"n".repeat(300)}":1}`;
  expect(errors(long)).toEqual([`${"n".repeat(100)}…: is not in the schema`]);
});

test("the last value of a repeated property counts", () => {
  expect(stampOf(order, '{"total":"x","total":2,"plan":"no","plan":"pro"}')).toEqual({
    version: 3,
    ok: true,
  });
  expect(stampOf({ additionalProperties: { type: "number" } }, '{"z":"x","z":2}')?.ok).toBe(true);
});

test("a schema sees the event after the rules, by its new name", () => {
  const rules = [
    { name: "to-order", match: { event: "buy" }, rename: "order", set: { plan: "pro" } },
    { name: "no-extra", remove: ["extra"] },
  ];
  const own = compiled(schemaFile(order, "stamp", rules));
  const sent = (event: string, more: object) =>
    take({ event, distinct_id: "u", properties: { total: 1, extra: 1, ...more } }, { rules: own });
  expect(sent("buy", {}).records[0]).toMatchObject({
    event: "order",
    rules: 1,
    schema: { ok: true },
  });
  expect(sent("order", {}).records[0]).toMatchObject({ schema: { errors: ["plan: is required"] } });
  expect(sent("other", {}).records[0]).not.toHaveProperty("schema");
});

test("a renamed event is judged by the schema of its new name only", () => {
  const schemaOf = (event: string, type: string) => ({
    event,
    version: 1,
    mode: "stamp",
    properties: { properties: { total: { type } } },
  });
  const rules = compiled({
    rules: [{ name: "to-order", match: { event: "buy" }, rename: "order" }],
    schemas: [schemaOf("buy", "string"), schemaOf("order", "number")],
  });
  const sent = (total: Json) =>
    take({ event: "buy", distinct_id: "u", properties: { total } }, { rules }).records[0];
  expect(sent(1)).toMatchObject({ event: "order", schema: { ok: true } });
  expect(sent("1")).toMatchObject({
    event: "order",
    schema: { errors: ["total: must be a number"] },
  });
});

/** The numbers of events that the only schema has checked. */
function countsOf({ schemas }: CompiledRules) {
  const { counts } = schemas[0]!;
  return { valid: counts[SchemaResult.valid], invalid: counts[SchemaResult.invalid] };
}

test("observe only counts, stamp writes the result, and quarantine stores valid events only", () => {
  const bodies = {
    batch: [{ total: 1, plan: "pro" }, { total: 1 }, null].map((properties) => ({
      event: "order",
      distinct_id: "u",
      properties,
    })),
  };
  const outcome = (mode: SchemaMode) => {
    const rules = compiled(schemaFile(order, mode));
    const { records, filtered } = take(bodies, { rules });
    const stamps = records.map((record) => (record["schema"] as Stamp | undefined)?.ok);
    return [stamps, filtered, countsOf(rules)];
  };
  const counts = { valid: 1, invalid: 2 };
  expect(outcome("observe")).toEqual([[undefined, undefined, undefined], 0, counts]);
  expect(outcome("stamp")).toEqual([[true, false, false], 0, counts]);
  expect(outcome("quarantine")).toEqual([[undefined], 2, counts]);
});

test("the guards, not the schema, judge properties that are not an object", () => {
  const rules = compiled(schemaFile(order, "quarantine"));
  const { filtered, dropped } = take(
    { event: "order", distinct_id: "u", properties: "x" },
    { rules },
  );
  expect([filtered, dropped, countsOf(rules)]).toEqual([0, 1, { valid: 0, invalid: 0 }]);
});

test("a property may have a name that objects inherit", () => {
  const form = {
    required: ["toString"],
    properties: JSON.parse('{"__proto__":{"type":"object","required":["__proto__"]}}') as Schema,
  };
  const errors = (json: string) => stampOf(form, json)?.errors;
  expect(errors('{"__proto__":{"__proto__":1},"toString":1}')).toBeUndefined();
  expect(errors('{"__proto__":{}}')).toEqual([
    "__proto__.__proto__: is required",
    "toString: is required",
  ]);
  expect(errors('{"__proto__":1,"toString":1}')).toEqual(["__proto__: must be an object"]);
});

test("a string that is too long for a pattern does not match it", () => {
  const form = { properties: { a: { type: "string", pattern: "^a*$" } } };
  expect(stampOf(form, JSON.stringify({ a: "a".repeat(4_096) }))?.ok).toBe(true);
  expect(stampOf(form, JSON.stringify({ a: "a".repeat(4_097) }))?.errors).toEqual([
    "a: must have at most 4096 bytes, because it has a pattern",
  ]);
});

test("an event with many unknown properties has a few errors", () => {
  const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`p${n}`, n]));
  const schema = { type: "object", additionalProperties: false };
  expect(stampOf(schema, JSON.stringify(many))?.errors).toHaveLength(5);
});

const changedPath = fc.constantFrom("plan", "total", "extra", "ü", "$set.plan", "$set");
const changedValue = fc.constantFrom<Json>("free", "pro", "x\ty", "", 1, 2.5, true, null, [1]);

test("the schema reads an event as the rules have changed it", () => {
  const change = fc.oneof(
    fc.record({ remove: fc.tuple(changedPath) }),
    fc.record({ hash: fc.tuple(changedPath.filter((path) => path !== "$set")) }),
    fc.record({ keep_only: fc.tuple(fc.constantFrom("plan", "total")) }),
    fc
      .tuple(fc.constantFrom("plan", "total", "$set.plan"), fc.constantFrom("pro", "", 1, null))
      .map(([path, value]) => ({ set: { [path]: value } })),
    fc.constant({ cut: { plan: 2 } }),
    fc.constant({ rename: "order" }),
  );
  // The guards remove a `$set` of another type after the check.
  const properties = fc.record(
    {
      ...Object.fromEntries(["plan", "total", "extra", "ü"].map((name) => [name, changedValue])),
      $set: fc.dictionary(fc.constantFrom("plan", "z"), changedValue),
    },
    { requiredKeys: [] },
  );
  const schema = {
    required: ["plan"],
    properties: {
      plan: { type: "string", pattern: "^[0-9a-f]*$", minLength: 3 },
      total: { type: ["string", "null"], maxLength: 64 },
      $set: { type: "object", properties: { plan: { enum: ["pro", 1] } }, required: ["plan"] },
    },
    additionalProperties: { type: "string" },
  };
  const onlySchema = compiled(schemaFile(schema));
  let invalid = 0;
  fc.assert(
    fc.property(
      fc.array(change, { minLength: 1, maxLength: 4 }),
      properties,
      fc.constantFrom("order", "buy"),
      (changes, sent, name) => {
        const rules = changes.map((one, index) => ({ name: `r${index}`, ...one }));
        const parsed = parseRules(yamlOf(schemaFile(schema, "stamp", rules)));
        // A rule without an effect is an error.
        if ("errors" in parsed) return;
        const body = { event: name, distinct_id: "u", properties: sent };
        const { records } = take(body, { rules: compileRules(parsed.rules, context) });
        const { event, properties: stored, schema: stamp } = records[0]!;
        const again = { event, distinct_id: "u", properties: stored };
        const expected = take(again, { rules: onlySchema }).records[0]!;
        if (Object.keys(expected["replaced"] ?? {}).length > 0) return;
        if (Object.keys(records[0]!["replaced"] ?? {}).length > 0) return;
        expect(stamp).toEqual(expected["schema"]);
        if ((stamp as Stamp | undefined)?.ok === false) invalid++;
      },
    ),
    { numRuns: 1_000 },
  );
  expect(invalid).toBeGreaterThan(100);
});
