// Reads the schema of an event's properties: the subset of JSON Schema that the gateway checks.

import { isMap, isScalar, isSeq, type ParsedNode, type YAMLMap } from "yaml";
import { elementsMax, ruleTextCharsMax, schemaLevelsMax, schemaMembersMax } from "./limits.ts";
import type { Scalar } from "./rules-file.ts";
import { patternError } from "./schema-pattern.ts";
import { type Member, nearestName, shown, type YamlReader } from "./yaml-reader.ts";

export const schemaTypes: readonly string[] = [
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null",
];

export type KeywordKind =
  | "types"
  | "names"
  | "schemas"
  | "schema"
  | "schema or boolean"
  | "scalars"
  | "scalar"
  | "number"
  | "count"
  | "pattern"
  | "text";

export const schemaKeywords: Readonly<Record<string, KeywordKind>> = {
  type: "types",
  properties: "schemas",
  required: "names",
  additionalProperties: "schema or boolean",
  items: "schema",
  minItems: "count",
  maxItems: "count",
  enum: "scalars",
  const: "scalar",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  minLength: "count",
  maxLength: "count",
  pattern: "pattern",
  title: "text",
  description: "text",
};

/** A schema that was read. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly enum?: readonly Scalar[];
  readonly const?: Scalar;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly title?: string;
  readonly description?: string;
}

const descriptionCharsMax = 1_000;

/** Reasons for keywords that authors of schemas expect. */
const unsupported: Readonly<Record<string, string>> = {
  $ref: "a schema cannot refer to itself or to another: write it out",
  patternProperties: "list the properties",
  format: "use pattern, such as ^[^@]+@[^@]+$ for an e-mail address",
};

/** Keywords that are only about values of some types. */
const typesOfKeyword: Readonly<Record<string, readonly string[]>> = {
  ...aboutTypes(["object"], ["properties", "required", "additionalProperties"]),
  ...aboutTypes(["array"], ["items", "minItems", "maxItems"]),
  ...aboutTypes(["string"], ["minLength", "maxLength", "pattern"]),
  ...aboutTypes(
    ["number", "integer"],
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  ),
  ...aboutTypes(["string", "number", "integer", "boolean", "null"], ["enum", "const"]),
};

function aboutTypes(types: readonly string[], keywords: readonly string[]) {
  return Object.fromEntries(keywords.map((keyword) => [keyword, types]));
}

interface Nesting {
  members: number;
  /** The level of the schema that is read. The schema of `properties` has level 1. */
  level: number;
}

/** Returns the schema as a plain object; undefined after an error, which `yaml` has recorded. */
export function readPropertiesSchema(yaml: YamlReader, member: Member): object | undefined {
  const counts: Nesting = { members: 0, level: 0 };
  const schema = readSchema(yaml, member, counts);
  if (schema === undefined || !isMap(member.value)) return undefined;
  if (counts.members > schemaMembersMax)
    return yaml.fail(
      member.value,
      `the schema has ${counts.members} keywords and properties; the maximum is ${schemaMembersMax}`,
    );
  const { type } = schema as { type?: unknown };
  if (type !== undefined && type !== "object")
    return yaml.fail(member.value, "the schema of properties must have type: object");
  if (type === undefined) refuseKeywordsOfOtherTypes(yaml, member.value, ["object"]);
  return schema;
}

function readSchema(yaml: YamlReader, { key, value }: Member, counts: Nesting): object | undefined {
  const members = yaml.map(value, { what: "a schema", key });
  if (members === undefined) return undefined;
  counts.members += members.size;
  if (counts.level === schemaLevelsMax)
    return yaml.fail(value!, `schemas are nested more than ${schemaLevelsMax} levels deep`);
  counts.level++;
  const schema = schemaOf(yaml, members, counts);
  counts.level--;
  const { type } = schema as { type?: string | readonly string[] };
  const types = [type ?? []].flat();
  if (types.length > 0 && types.every((one) => schemaTypes.includes(one))) {
    refuseKeywordsOfOtherTypes(yaml, value as YAMLMap, types);
    refuseValuesOfOtherTypes(yaml, members, types);
  }
  refuseEmptyRanges(yaml, members);
  return schema;
}

/** Pairs of keywords, and whether they allow a value if they are equal. */
const ranges: readonly (readonly [low: string, high: string, isAtEqual: boolean])[] = [
  ["minimum", "maximum", true],
  ["exclusiveMinimum", "maximum", false],
  ["minimum", "exclusiveMaximum", false],
  ["exclusiveMinimum", "exclusiveMaximum", false],
  ["minLength", "maxLength", true],
  ["minItems", "maxItems", true],
];

function refuseEmptyRanges(yaml: YamlReader, members: ReadonlyMap<string, Member>): void {
  for (const [low, high, isAtEqual] of ranges) {
    const least = scalarIn(members.get(low)?.value);
    const most = scalarIn(members.get(high)?.value);
    if (typeof least !== "number" || typeof most !== "number") continue;
    if (least > most || (least === most && !isAtEqual))
      yaml.failNew(
        members.get(high)!.value!,
        `${low} ${least} and ${high} ${most} allow no value: correct one of them`,
      );
  }
}

/** Refuses values of `const` and `enum` that the type next to them does not allow. */
function refuseValuesOfOtherTypes(
  yaml: YamlReader,
  members: ReadonlyMap<string, Member>,
  types: readonly string[],
): void {
  for (const name of ["const", "enum"]) {
    const value = members.get(name)?.value;
    for (const node of isSeq(value) ? (value.items as ParsedNode[]) : [value]) {
      const scalar = scalarIn(node);
      if (scalar === undefined || typesOfScalar(scalar).some((type) => types.includes(type)))
        continue;
      yaml.failNew(
        node!,
        `${name} has ${yaml.shown(node!)}, which the type ${types.join(", ")} does not allow: correct one of them`,
      );
    }
  }
}

function scalarIn(node: ParsedNode | null | undefined): Scalar | undefined {
  return isScalar(node) ? (node.value as Scalar) : undefined;
}

function typesOfScalar(scalar: Scalar): string[] {
  if (scalar === null) return ["null"];
  return Number.isInteger(scalar) ? ["number", "integer"] : [typeof scalar];
}

function refuseKeywordsOfOtherTypes(
  yaml: YamlReader,
  { items }: YAMLMap<unknown, unknown>,
  types: readonly string[],
): void {
  for (const { key } of items as { key: ParsedNode }[]) {
    const name = isScalar(key) ? String(key.value) : "";
    const about = Object.hasOwn(typesOfKeyword, name) ? typesOfKeyword[name]! : undefined;
    if (about === undefined || about.some((type) => types.includes(type))) continue;
    yaml.fail(key, `${name} is for ${about.join(", ")}, and the type is ${types.join(", ")}`);
  }
}

function schemaOf(yaml: YamlReader, members: ReadonlyMap<string, Member>, counts: Nesting): object {
  const entries = [...members.values()].map((one) => {
    const kind = Object.hasOwn(schemaKeywords, one.name) ? schemaKeywords[one.name] : undefined;
    if (kind !== undefined) return [one.name, readKeyword(yaml, one, { kind, counts })];
    const keywords = Object.keys(schemaKeywords);
    const near = nearestName(one.name, keywords);
    const hint =
      near === undefined
        ? `the supported keywords are ${keywords.join(", ")}`
        : `did you mean ${near}?`;
    const why = Object.hasOwn(unsupported, one.name) ? unsupported[one.name] : hint;
    return [
      one.name,
      yaml.fail(one.key, `the keyword ${shown(one.name)} is not supported: ${why}`),
    ];
  });
  return Object.fromEntries(entries);
}

function readKeyword(
  yaml: YamlReader,
  member: Member,
  { kind, counts }: { readonly kind: KeywordKind; readonly counts: Nesting },
): unknown {
  const { name, key, value } = member;
  switch (kind) {
    case "types": {
      const texts = value !== null && isSeq(value) ? textsOf(yaml, member) : yaml.text(member, 20);
      for (const text of [texts ?? []].flat())
        if (!schemaTypes.includes(text))
          yaml.fail(value!, `type must be one of ${schemaTypes.join(", ")} (got ${shown(text)})`);
      return texts;
    }
    case "names":
      return textsOf(yaml, member);
    case "schemas": {
      const schemas = yaml.map(value, { what: name, key });
      counts.members += schemas?.size ?? 0;
      return Object.fromEntries(
        [...(schemas ?? [])].map(([property, one]) => [property, readSchema(yaml, one, counts)]),
      );
    }
    case "schema":
      return readSchema(yaml, member, counts);
    case "schema or boolean":
      return isScalar(value) ? booleanOf(yaml, member) : readSchema(yaml, member, counts);
    case "scalars":
      return nodesOf(yaml, member)?.map(
        (node) => yaml.scalar({ name, key, value: node }, ruleTextCharsMax)?.value,
      );
    case "scalar":
      return yaml.scalar(member, ruleTextCharsMax)?.value;
    case "number":
      return yaml.number(member);
    case "count": {
      const count = yaml.number(member);
      if (count === undefined || (Number.isSafeInteger(count) && count >= 0)) return count;
      return yaml.fail(value!, `${name} must be a whole number from 0 (got ${count})`);
    }
    case "pattern": {
      const pattern = yaml.text(member, ruleTextCharsMax);
      const error = pattern === undefined ? undefined : patternError(pattern);
      return error === undefined ? pattern : yaml.fail(value!, `pattern: ${error}`);
    }
    case "text":
      return yaml.text(member, descriptionCharsMax);
  }
}

function booleanOf(yaml: YamlReader, member: Member): boolean | undefined {
  yaml.boolean(member);
  return (member.value as { value?: boolean }).value;
}

function textsOf(yaml: YamlReader, member: Member): string[] | undefined {
  const { name, key } = member;
  return nodesOf(yaml, member)?.flatMap(
    (node) => yaml.text({ name, key, value: node }, ruleTextCharsMax) ?? [],
  );
}

function nodesOf(yaml: YamlReader, { name, key, value }: Member): ParsedNode[] | undefined {
  const nodes = yaml.list(value, name, key);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0) return yaml.fail(value!, `${name} is empty: remove it`);
  if (nodes.length <= elementsMax) return nodes;
  return yaml.fail(value!, `${name} has ${nodes.length} elements; the maximum is ${elementsMax}`);
}
