import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { type CompiledRules, compileRules } from "../../src/rules/compile.ts";
import { SchemaResult } from "../../src/rules/event-schema.ts";
import { parseRules } from "../../src/rules/parse.ts";
import type { SchemaMode } from "../../src/rules/rules-file.ts";
import { take } from "../kit/items.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Schema = Readonly<Record<string, unknown>>;

const context = { version: 1, secret: Buffer.from("secret") };

function yamlOf(file: object): string {
  return stringify(file, { aliasDuplicateObjects: false });
}

function compiled(file: object): CompiledRules {
  const parsed = parseRules(yamlOf(file));
  if ("errors" in parsed) throw new Error(JSON.stringify(parsed.errors));
  return compileRules(parsed.rules, context);
}

const schemaFile = (properties: Schema, mode: SchemaMode = "stamp", rules: object[] = []) => ({
  rules,
  schemas: [{ event: "order", version: 3, mode, properties }],
});

interface Stamp {
  readonly version: number;
  readonly ok: boolean;
  readonly errors?: readonly string[];
}

/** Sends `properties` as JSON text, and returns the `schema` of the stored record. */
function stampBy(rules: CompiledRules, properties: string): Stamp | undefined {
  const event = `{"event":"order","distinct_id":"u","properties":${properties}}`;
  const { records } = take(Buffer.from(event), { rules });
  expect(records).toHaveLength(1);
  return records[0]!["schema"] as Stamp | undefined;
}

function stampOf(schema: Schema, properties: string): Stamp | undefined {
  return stampBy(compiled(schemaFile(schema)), properties);
}

const names = ["a", "b", "a.b", "ü", 'q"\\', "constructor", "$lib", "token"];
const texts = ["free", "pro", "", "ä€😀", "a-1", "2026-01-02"];
const scalar = fc.constantFrom<Json>(...texts, null, true, false, 0, 1, 1.5, -3, 100);
/** Values have this text if the schema does not have it, so that no error may contain it. */
const personal = "jane@example.com";
const value: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 6, arbitrary: scalar },
    fc.constantFrom<Json>(personal, `${personal}😀`.repeat(3), "😀😀", 1e21, 1e3, -0),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true, min: -100, max: 100 }),
    fc.integer({ min: -9_999, max: 9_999 }).map((hundredths) => hundredths / 100),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 4 }),
  ),
})).value;
const properties = fc.dictionary(fc.constantFrom(...names, "other"), value, { maxKeys: 6 });

const small = fc.integer({ min: 0, max: 6 });
const bound = fc.constantFrom(-3, 0, 0.1, 1, 1.5, 9.99, 50);
const optional: { requiredKeys: [] } = { requiredKeys: [] };
const patterns = ["^[a-z]+$", "^\\d{4}-\\d{2}", "^[^@]*$", "^\\S+$", "^[a-z]-?\\d*$"];
const forms = {
  string: fc.record(
    {
      minLength: small,
      maxLength: small,
      pattern: fc.constantFrom(...patterns),
      enum: fc.uniqueArray(fc.constantFrom(...texts), { minLength: 1, maxLength: 3 }),
    },
    optional,
  ),
  number: fc.record(
    {
      minimum: bound,
      maximum: bound,
      exclusiveMinimum: bound,
      exclusiveMaximum: bound,
      const: fc.constantFrom(0, 1, 1.5),
    },
    optional,
  ),
};
const schema: fc.Arbitrary<Schema> = fc.letrec<{ object: Schema; any: Schema }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Schema>({}, ...["boolean", "null", "integer"].map((type) => ({ type }))),
    fc.constantFrom<Schema>({ type: ["string", "null"] }, { type: ["integer", "string"] }),
    fc.record({ enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }) }),
    forms.string,
    forms.string.map((form) => ({ type: "string", ...form })),
    forms.number.map((form) => ({ type: "number", ...form })),
    forms.number.map((form) => ({ type: "integer", ...form })),
    fc
      .record({ items: tie("any"), minItems: small, maxItems: small }, optional)
      .map((form) => ({ type: "array", ...form })),
    tie("object"),
  ),
  object: fc
    .record(
      {
        properties: fc.dictionary(fc.constantFrom(...names), tie("any"), { maxKeys: 4 }),
        required: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }),
        additionalProperties: fc.oneof(fc.boolean(), tie("any")),
      },
      optional,
    )
    .map((form) => ({ type: "object", ...form })),
})).object;

const ajv = new Ajv2020({ strict: false, allErrors: true, ownProperties: true });

/** The validator of a schema, except that properties of SDKs are never additional. */
function oracleOf(form: Schema) {
  return ajv.compile({
    ...form,
    patternProperties: { "^\\$": true, "^(?:token|distinct_id)$": true },
  });
}

/** Returns the path of an error in our form, as in `a[0].b`. */
function pathOf({ instancePath, keyword, params }: ErrorObject): string {
  const steps = instancePath.split("/").slice(1);
  if (keyword === "required") steps.push(params["missingProperty"] as string);
  if (keyword === "additionalProperties") steps.push(params["additionalProperty"] as string);
  const [first = "", ...rest] = steps.map((step) =>
    step.replaceAll("~1", "/").replaceAll("~0", "~"),
  );
  return first + rest.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join("");
}

/** Writes JSON with escapes in texts, and white space. Names have the spelling of JSON.stringify. */
function unusualJson(json: Json): string {
  if (typeof json === "string")
    return `"${json.replaceAll(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;
  if (typeof json === "number")
    return Number.isInteger(json) ? `${json}.0e0`.replace(/(e\+\d+)\.0e0/, "$1") : `${json}`;
  if (Array.isArray(json)) return `[ ${json.map(unusualJson).join(" , ")} ]`;
  if (typeof json !== "object" || json === null) return JSON.stringify(json);
  const members = Object.entries(json).map(
    ([name, one]) => `${JSON.stringify(name)} : ${unusualJson(one)}`,
  );
  return `{ ${members.join(" ,\n")} }`;
}

test("a schema judges random properties like Ajv, and names only failing properties", () => {
  const seen = { valid: 0, invalid: 0 };
  fc.assert(
    fc.property(schema, fc.array(properties, { minLength: 4, maxLength: 4 }), (form, sent) => {
      const oracle = oracleOf(form);
      const rules = compiled(schemaFile(form));
      for (const one of sent) {
        for (const text of [JSON.stringify(one), unusualJson(one)]) {
          const isValid = oracle(JSON.parse(text));
          seen[isValid ? "valid" : "invalid"]++;
          const stamp = stampBy(rules, text);
          expect([stamp?.version, stamp?.ok]).toEqual([3, isValid]);
          const errors = stamp?.errors ?? [];
          expect(errors.length).toBeLessThanOrEqual(5);
          expect(errors.length > 0).toBe(!isValid);
          const paths = new Set((oracle.errors ?? []).map(pathOf));
          for (const error of errors) {
            expect([...paths].some((path) => error.startsWith(`${path}: `))).toBe(true);
            expect(error).not.toContain(personal);
          }
        }
      }
    }),
    { numRuns: 100 },
  );
  expect(Math.min(seen.valid, seen.invalid)).toBeGreaterThan(30);
});

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
