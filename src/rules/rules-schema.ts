// The JSON Schema of a rules file, for editors. It describes the form of a file. `parseRules` also
// finds duplicate names and conflicts between rules, which a JSON Schema cannot express.

import { lanes } from "../platform/base/lane.ts";
import { cutBytesMax, elementsMax, rulesMax, ruleTextCharsMax, schemasMax } from "./limits.ts";
import { distinctIdProperties, keyProperties, ruleNameForm } from "./parse.ts";
import { effectProperties, ipRules, ruleModes, schemaModes } from "./rules-file.ts";
import { type KeywordKind, schemaKeywords, schemaTypes } from "./schema-subset.ts";

const text = { type: "string", minLength: 1, maxLength: ruleTextCharsMax };
const scalar = {
  type: ["string", "number", "boolean", "null"],
  maxLength: ruleTextCharsMax,
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
};
const count = { type: "integer", minimum: 0 };
const only = (value: unknown) => ({ const: value });
const ref = (name: string) => ({ $ref: `#/$defs/${name}` });
const listOf = (items: object) => ({ type: "array", items, minItems: 1, maxItems: elementsMax });
const oneOrMore = (items: object) => ({ anyOf: [items, listOf(items)] });

function mapOf(additionalProperties: object, propertyNames: object): object {
  const counts = { minProperties: 1, maxProperties: elementsMax };
  return { type: "object", propertyNames, additionalProperties, ...counts };
}

function described(description: string, schema: object): object {
  return { description, ...schema };
}

/** In a condition, a text with a glob is an error. */
const compared = { ...scalar, pattern: "^[^*]*$" };
const pattern = { ...text, not: { pattern: "^(?:/.*/[dgimsuvy]*$|\\^|\\.\\*)" } };
const path = {
  ...text,
  pattern: "^(?:\\$set\\.|\\$set_once\\.)?(?:[^*.\\\\]|\\\\[.\\\\])+$",
  not: { enum: keyProperties },
};

const match = {
  type: "object",
  minProperties: 1,
  additionalProperties: false,
  properties: {
    event: described("Event names. * matches any characters.", oneOrMore(ref("pattern"))),
    sdk: described("Names of SDKs, as in $lib. * matches any characters.", {
      ...oneOrMore(ref("pattern")),
    }),
    sdk_version: described("Versions of the SDK, as in $lib_version, in quotes.", {
      ...oneOrMore(ref("pattern")),
    }),
    lane: described("live, or historical for imported events.", { enum: [...lanes] }),
    bot: described("Whether the User-Agent is a known bot.", { type: "boolean" }),
    properties: described("Conditions on properties, all of which must hold.", {
      ...mapOf(ref("condition"), ref("path")),
    }),
  },
};

const condition = {
  anyOf: [
    described("The value that the property must equal.", ref("compared")),
    described("The property must equal one of these values.", listOf(ref("compared"))),
    {
      type: "object",
      required: ["like"],
      additionalProperties: false,
      properties: {
        like: described("Texts of the property. * matches any characters.", {
          ...oneOrMore(ref("pattern")),
        }),
      },
    },
    ...["exists", "absent"].map((name) => ({
      type: "object",
      required: [name],
      additionalProperties: false,
      properties: { [name]: only(true) },
    })),
  ],
};

const changingActions = {
  sample: described("The share of distinct ids whose events are stored, such as 0.1.", {
    type: "number",
    exclusiveMinimum: 0,
    exclusiveMaximum: 1,
  }),
  keep_only: described("Properties to keep. Removes all others that Penstock does not read.", {
    ...listOf({ allOf: [ref("path"), { not: { pattern: "^\\$set(_once)?\\." } }] }),
  }),
  remove: described("Properties to remove.", listOf(ref("removed_path"))),
  hash: described("Properties to replace by a hash with the project's secret.", {
    ...listOf(ref("changed_path")),
  }),
  cut: described("Maximum bytes of the texts in these properties.", {
    ...mapOf({ type: "integer", minimum: 1, maximum: cutBytesMax }, ref("changed_path")),
  }),
  set: described("Properties to set.", mapOf(ref("scalar"), ref("changed_path"))),
  rename: described("The new name of the event.", { ...text, pattern: "^[^*]*$" }),
};
const endingActions = {
  drop: described("Drops the event.", only(true)),
  quarantine: described("Stores the event in quarantine instead.", only(true)),
};
const actions = { ...endingActions, ...changingActions };

const rule = {
  type: "object",
  required: ["name"],
  additionalProperties: false,
  properties: {
    name: described("Unique in the file.", { type: "string", pattern: ruleNameForm.source }),
    mode: described("enforce, the default, applies the rule. observe only counts.", {
      enum: ruleModes,
    }),
    match: described("The events that the rule is for. Without match, all events.", ref("match")),
    ...actions,
  },
  anyOf: Object.keys(actions).map((name) => ({ required: [name] })),
  // drop and quarantine end the evaluation, so no other action may be next to them.
  allOf: Object.keys(endingActions).map((ending) => ({
    if: { required: [ending] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {
      properties: Object.fromEntries(
        Object.keys(actions).flatMap((name) => (name === ending ? [] : [[name, false]])),
      ),
    },
  })),
};

const keywordForms: Readonly<Record<KeywordKind, object>> = {
  types: oneOrMore({ enum: schemaTypes }),
  names: listOf(ref("text")),
  schemas: { type: "object", additionalProperties: ref("schema") },
  schema: ref("schema"),
  "schema or boolean": { anyOf: [{ type: "boolean" }, ref("schema")] },
  scalars: listOf(ref("scalar")),
  scalar: ref("scalar"),
  number: { type: "number" },
  count,
  pattern: ref("text"),
  text: { type: "string", minLength: 1, maxLength: 1_000 },
};

const eventSchema = {
  type: "object",
  required: ["event", "version", "properties"],
  additionalProperties: false,
  properties: {
    event: described("The exact name of the event.", { ...text, pattern: "^[^*]*$" }),
    version: described("The version of the schema.", { type: "integer", minimum: 1 }),
    mode: described(
      "observe, the default, counts. stamp adds the result to the record. quarantine stores wrong events in quarantine.",
      { enum: schemaModes },
    ),
    properties: described("The schema of the event's properties.", {
      allOf: [ref("schema"), { properties: { type: only("object") } }],
    }),
  },
};

const privacy = {
  type: "object",
  additionalProperties: false,
  properties: {
    ip: described("What happens with the client's address.", { enum: ipRules }),
    cut_query: described('Query parameters to cut from URLs, or ["*"] for all.', {
      anyOf: [{ const: ["*"] }, { ...listOf({ ...text, not: only("*") }) }],
    }),
    cut_fragment: described("Whether the fragment (#…) is cut from URLs.", { type: "boolean" }),
    cookieless: described("Whether cookieless events get PostHog's daily hash as distinct id.", {
      type: "boolean",
    }),
  },
};

/** Returns docs/reference/rules.schema.json. */
export function rulesSchema(): object {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Rules of a Penstock project",
    type: "object",
    minProperties: 1,
    additionalProperties: false,
    properties: {
      privacy: described("Applied before the rules.", privacy),
      rules: described("Applied from top to bottom.", {
        type: "array",
        items: ref("rule"),
        maxItems: rulesMax,
      }),
      schemas: described("Checked after the rules.", {
        type: "array",
        items: ref("event_schema"),
        maxItems: schemasMax,
      }),
    },
    $defs: {
      text,
      scalar,
      compared,
      pattern,
      path,
      removed_path: {
        allOf: [ref("path"), { not: { enum: distinctIdProperties } }],
      },
      changed_path: {
        allOf: [ref("removed_path"), { not: { enum: effectProperties } }],
      },
      match,
      condition,
      rule,
      event_schema: eventSchema,
      schema: {
        type: "object",
        additionalProperties: false,
        properties: Object.fromEntries(
          Object.entries(schemaKeywords).map(([name, kind]) => [name, keywordForms[kind]]),
        ),
      },
    },
  };
}
