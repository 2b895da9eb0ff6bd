// Random schemas and properties, and Ajv as their validator.

import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import fc from "fast-check";
import { stringify } from "yaml";
import { type CompiledRules, compileRules } from "../../src/rules/compile.ts";
import { parseRules } from "../../src/rules/parse.ts";
import type { SchemaMode } from "../../src/rules/rules-file.ts";
import { take } from "../kit/items.ts";

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json };
export type Schema = Readonly<Record<string, unknown>>;

export const context = { version: 1, secret: Buffer.from("secret") };

export function yamlOf(file: object): string {
  return stringify(file, { aliasDuplicateObjects: false });
}

export function compiled(file: object): CompiledRules {
  const parsed = parseRules(yamlOf(file));
  if ("errors" in parsed) throw new Error(JSON.stringify(parsed.errors));
  return compileRules(parsed.rules, context);
}

export const schemaFile = (
  properties: Schema,
  mode: SchemaMode = "stamp",
  rules: object[] = [],
) => ({
  rules,
  schemas: [{ event: "order", version: 3, mode, properties }],
});

export interface Stamp {
  readonly version: number;
  readonly ok: boolean;
  readonly errors?: readonly string[];
}

/** Sends an event with these properties as JSON text, and returns the `schema` of its record. */
export function stampBy(rules: CompiledRules, properties: string): Stamp | undefined {
  const event = `{"event":"order","distinct_id":"u","properties":${properties}}`;
  return take(event, { rules }).records[0]!["schema"] as Stamp | undefined;
}

const names = ["a", "b", "a.b", "ü", 'q"\\', "constructor", "$lib", "token"];
const texts = ["free", "pro", "", "ä€😀", "a-1", "2026-01-02"];
const scalar = fc.constantFrom<Json>(...texts, null, true, false, 0, 1, 1.5, -3, 100);
/** Values have this text if the schema does not have it, so that no error may contain it. */
export const personal = "jane@example.com";
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
export const properties = fc.dictionary(fc.constantFrom(...names, "other"), value, { maxKeys: 6 });

const small = fc.integer({ min: 0, max: 6 });
const bound = fc.constantFrom(-3, 0, 0.1, 1, 1.5, 9.99, 50);
const optional: { requiredKeys: [] } = { requiredKeys: [] };
const patterns = ["^[a-z]+$", "^\\d{4}-\\d{2}", "^[^@]*$", "^\\S+$", "^[a-z]-?\\d*$"];
/** Whether the bounds of a form allow a value. The parser rejects other forms. */
export function hasValues(form: Schema): boolean {
  const {
    minimum = Number.NEGATIVE_INFINITY,
    maximum = Number.POSITIVE_INFINITY,
    exclusiveMinimum: above = Number.NEGATIVE_INFINITY,
    exclusiveMaximum: below = Number.POSITIVE_INFINITY,
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
    minItems = 0,
    maxItems = Number.POSITIVE_INFINITY,
  } = form as Record<string, number>;
  return (
    minimum <= maximum &&
    Math.max(minimum, above) < below &&
    above < maximum &&
    minLength <= maxLength &&
    minItems <= maxItems
  );
}

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
export const schema: fc.Arbitrary<Schema> = fc.letrec<{ object: Schema; any: Schema }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Schema>({}, ...["boolean", "null", "integer"].map((type) => ({ type }))),
    fc.constantFrom<Schema>({ type: ["string", "null"] }, { type: ["integer", "string"] }),
    fc.record({ enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }) }),
    forms.string.filter(hasValues),
    forms.string.filter(hasValues).map((form) => ({ type: "string", ...form })),
    forms.number.filter(hasValues).map((form) => ({ type: "number", ...form })),
    forms.number
      .filter((form) => hasValues(form) && form.const !== 1.5)
      .map((form) => ({ type: "integer", ...form })),
    fc
      .record({ items: tie("any"), minItems: small, maxItems: small }, optional)
      .filter(hasValues)
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
export function oracleOf(form: Schema) {
  return ajv.compile({
    ...form,
    patternProperties: { "^\\$": true, "^(?:token|distinct_id)$": true },
  });
}

/** Returns the path of an error in our form, as in `a[0].b`, or its first steps. */
export function pathOf({ instancePath, keyword, params }: ErrorObject, stepsMax?: number): string {
  const steps = instancePath.split("/").slice(1);
  if (keyword === "required") steps.push(params["missingProperty"] as string);
  if (keyword === "additionalProperties") steps.push(params["additionalProperty"] as string);
  const [first = "", ...rest] = steps
    .slice(0, stepsMax)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  return first + rest.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join("");
}

/** Writes JSON with escapes in texts, and white space. Names have the spelling of JSON.stringify. */
export function unusualJson(json: Json): string {
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
