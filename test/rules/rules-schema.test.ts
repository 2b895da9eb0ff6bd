import { readFileSync } from "node:fs";
import Ajv from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parse, parseDocument, stringify } from "yaml";
import { parseRules } from "../../src/rules/parse.ts";
import { bad, rule, whole } from "./rules-kit.ts";

const file = new URL("../../docs/reference/rules.schema.json", import.meta.url);
const validate = new Ajv.default({ strict: false, allErrors: false }).compile(
  JSON.parse(readFileSync(file, "utf8")) as object,
);

/** Messages of errors that a JSON Schema cannot express. */
const beyondForm =
  /two rules have the name|two schemas are for|it never matches|both name|has no effect: (?:add|remove it here)|YAML 1\.1 reads as|has "[^"]*" twice|cut_query has "\*"|is compared with the text|pattern: |, and the type is |nested more than|allow no value|does not allow/;

const good: readonly string[] = [
  whole,
  "rules: []",
  "privacy: {}",
  'privacy: { cut_query: ["*"] }',
  "privacy: { cookieless: true, cut_fragment: false, ip: keep }",
  rule("match: { properties: { a: null, b: [1, x], c: { absent: true } } }\n    sample: 0.5"),
  rule('match: { event: ["*", "a*b*c", "/a/b", "x.*"] }\n    rename: "/a/"'),
  rule('match: { properties: { a: { like: "*x" }, b: { like: [x, "y*"] } } }\n    set: { a: "*" }'),
  rule("keep_only: [$set, a\\.b, $set\\.b]\n    set: { $set.a: 1 }\n    remove: [$set.b, $unset]"),
  "schemas: [{ event: a, version: 1, properties: {} }]",
];

test.each(good)("the schema and the parser accept %#", (text) => {
  expect(parseRules(text)).toHaveProperty("rules");
  expect([validate(parse(text)), validate.errors]).toEqual([true, null]);
});

test("the schema rejects every bad file whose error is one of form", () => {
  const accepted = bad.filter(([, text, errors]) => {
    const document = parseDocument(text, { uniqueKeys: false, logLevel: "silent" });
    const isForm = !errors.every((error) => beyondForm.test(error));
    // Errors of YAML itself, which leave nothing to validate.
    const isYaml = errors.some((error) =>
      /anchors|aliases|tags|directive|second document|control character|duplicate key|file is empty|has no value/.test(
        error,
      ),
    );
    return document.errors.length === 0 && isForm && !isYaml && validate(document.toJS()) === true;
  });
  expect(accepted.map(([title]) => title)).toEqual([]);
  expect(bad.length).toBeGreaterThan(50);
});

const name = fc.constantFrom(
  "a",
  "b",
  "$set.a",
  "$set",
  "$groups",
  "token",
  "distinct_id",
  "",
  "x*",
  "$set_once.",
  "a.b",
  "$set.a.b",
  "a\\.b",
  "a\\\\b",
  "a\\b",
  "$set.a\\.b",
);
const scalar = fc.constantFrom<unknown>(null, true, false, 0, 1, 0.5, -1, "a", "a*", "", "live");
const anything = fc.oneof(
  scalar,
  fc.array(scalar, { maxLength: 2 }),
  fc.dictionary(name, scalar, { maxKeys: 2 }),
);
const names = fc.oneof(fc.array(name, { maxLength: 3 }), anything);
const map = fc.oneof(fc.dictionary(name, scalar, { maxKeys: 3 }), anything);
const optional: { requiredKeys: [] } = { requiredKeys: [] };
/** One to three of the members, so that most values have at most one error. */
function few(members: Readonly<Record<string, fc.Arbitrary<unknown>>>) {
  return fc
    .uniqueArray(fc.constantFrom(...Object.keys(members)), { minLength: 1, maxLength: 3 })
    .chain((some) => fc.record(Object.fromEntries(some.map((one) => [one, members[one]!]))));
}

const anyMatch = few({
  event: fc.oneof(name, names),
  sdk: names,
  sdk_version: anything,
  lane: fc.oneof(fc.constantFrom("live", "historical"), anything),
  bot: fc.oneof(fc.boolean(), anything),
  properties: fc.oneof(
    map,
    fc.dictionary(name, fc.dictionary(fc.constantFrom("exists", "absent"), fc.boolean())),
    fc.dictionary(
      name,
      fc.record({ like: fc.oneof(anything, fc.constantFrom("a*", "^a", ".*b")) }),
    ),
  ),
});
const anyRule = few({
  name: fc.oneof(fc.constantFrom("r1", "r2", "r3"), anything),
  mode: fc.constantFrom<unknown>("enforce", "observe", "off"),
  match: anyMatch,
  drop: fc.constantFrom<unknown>(true, false),
  quarantine: fc.constant(true),
  sample: fc.oneof(fc.constantFrom(0, 0.1, 1), anything),
  keep_only: names,
  remove: names,
  hash: names,
  cut: fc.oneof(fc.dictionary(name, fc.constantFrom(0, 1, 2.5)), map),
  set: map,
  rename: fc.oneof(name, anything),
  other: scalar,
});
const anySchema = few({
  event: name,
  version: fc.constantFrom<unknown>(0, 1, 1.5, "1"),
  mode: fc.constantFrom("stamp", "quarantine", "observe", "enforce"),
  properties: fc.oneof(
    anything,
    few({
      type: fc.constantFrom<unknown>("object", "string", ["object"], "float"),
      required: names,
      properties: fc.dictionary(name, fc.record({ type: scalar, enum: names }, optional)),
      additionalProperties: fc.oneof(fc.boolean(), anything),
      minLength: scalar,
      $ref: fc.constant("#"),
    }),
  ),
});
const anyFile = fc.record(
  {
    privacy: fc.oneof(
      fc.record(
        {
          ip: fc.constantFrom("keep", "hash", "none"),
          cut_query: names,
          cut_fragment: anything,
          cookieless: fc.boolean(),
        },
        optional,
      ),
      anything,
    ),
    rules: fc.oneof({ weight: 5, arbitrary: fc.array(anyRule, { maxLength: 2 }) }, anything),
    schemas: fc.oneof({ weight: 5, arbitrary: fc.array(anySchema, { maxLength: 2 }) }, anything),
    other: scalar,
  },
  optional,
);

test("the schema and the parser agree on random files, except for what a schema cannot express", () => {
  let accepted = 0;
  const agree = (value: unknown) => {
    const parsed = parseRules(stringify(value, { aliasDuplicateObjects: false }));
    const isValid = validate(value);
    if ("rules" in parsed) {
      accepted++;
      expect([isValid, validate.errors]).toEqual([true, null]);
    } else if (isValid)
      expect(parsed.errors.filter(({ message }) => !beyondForm.test(message))).toEqual([]);
  };
  fc.assert(fc.property(anyFile, agree), { numRuns: 300 });
  // One part at a time, so that many files are valid.
  fc.assert(
    fc.property(anyRule, (one) => agree({ rules: [{ name: "r", ...one }] })),
    {
      numRuns: 2_000,
    },
  );
  const schema = { event: "a", version: 1, properties: {} };
  fc.assert(
    fc.property(anySchema, (one) => agree({ schemas: [{ ...schema, ...one }] })),
    {
      numRuns: 2_000,
    },
  );
  expect(accepted).toBeGreaterThan(50);
});
