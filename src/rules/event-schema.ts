// Checks the properties of events against the schemas of a project. Most checks read the bytes of a
// member; JSON.parse runs only if a schema looks inside an object or array, and for messages.

import { Buffer } from "node:buffer";
import { TokenType } from "../records/table.ts";
import { schemaErrorsMax, schemaMember } from "../records/verdict.ts";
import { ruleTextCharsMax } from "./limits.ts";
import type { EventSchema, Scalar, SchemaMode } from "./rules-file.ts";
import {
  type BytesTest,
  compileBytesPattern,
  compilePattern,
  patternBytesMax,
  type TextTest,
} from "./schema-pattern.ts";
import type { JsonSchema } from "./schema-subset.ts";

/** The members of the `properties` of one event. An entry is a number from 1 on. */
export interface SchemaMembers {
  /** Returns the buffer with the value of an entry, at [startOf, endOf). */
  bodyOf(entry: number): Buffer;
  /** Returns the last member with a path, or 0. */
  entryOf(path: number): number;
  typeOf(entry: number): TokenType;
  startOf(entry: number): number;
  endOf(entry: number): number;
  /** Returns the next entry of a member of `properties` itself, from 0 on; 0 at the end. */
  nextProperty(entry: number): number;
  /** Returns the path of a member; 0 if it has none. */
  pathAt(entry: number): number;
  nameAt(entry: number): string;
  /** Whether the name of a member begins with `$`. */
  hasDollarAt(entry: number): boolean;
}

/** Maximum characters of a property's path, and of a rule, in an error. */
export const pathCharsShownMax = 100;
const shownValuesMax = 5;

/** Properties that SDKs add. They are never additional properties. */
const sdkProperties: ReadonlySet<string> = new Set(["token", "distinct_id"]);

export function isSdkProperty(name: string): boolean {
  return name.startsWith("$") || sdkProperties.has(name);
}

/**
 * `pathOf` returns the number of a member of `properties`, by its name. `counts` has an element for
 * each `SchemaResult`.
 */
export function compileSchema(
  schema: EventSchema,
  pathOf: (name: string) => number,
  counts: Float64Array,
): CompiledSchema {
  return new CompiledSchema(schema, pathOf, counts);
}

/** The result of a schema, and its index in the counts of a schema. */
export const SchemaResult = { valid: 0, invalid: 1 } as const;
export type SchemaResult = keyof typeof SchemaResult;

/** What a schema has found in one event. */
export interface SchemaCheck {
  readonly schema: CompiledSchema;
  /** Empty if the properties are valid. */
  readonly errors: readonly string[];
  /** The member of the record. Only in the mode `stamp`. */
  readonly stamp: Buffer | undefined;
}

/** A bit for each TokenType of which every value passes, and a bit for a required property. */
export const MemberMask = { Types: 0xffff, Required: 0x1_0000, RequiredShift: 16 } as const;

interface PropertyCheck {
  readonly name: string;
  readonly path: number;
  readonly isRequired: boolean;
  readonly value: ValueSchema;
}

export class CompiledSchema {
  readonly event: string;
  readonly version: number;
  readonly mode: SchemaMode;
  /** Whether every property is read, not only those that the schema names. */
  readonly readsAll: boolean;
  /** Number of checked events by `SchemaResult`. */
  readonly counts: Float64Array;
  /** The result for each event whose properties are valid. */
  readonly valid: SchemaCheck;
  /** By path, the bits of `MemberMask`. The first element is that of all other paths. */
  readonly masks: Uint32Array;
  /** Number of required properties. */
  readonly requiredCount: number;
  readonly #checks: readonly PropertyCheck[];
  readonly #checkOf: readonly (PropertyCheck | undefined)[];
  readonly #named: ReadonlySet<number>;
  /** The last result with errors. */
  #last: SchemaCheck;
  /** The schema of all other properties: false for none, undefined for any. */
  readonly other: ValueSchema | false | undefined;

  constructor(
    { event, version, mode, properties }: EventSchema,
    pathOf: (name: string) => number,
    counts: Float64Array,
  ) {
    this.counts = counts;
    this.event = event;
    this.version = version;
    this.mode = mode;
    this.valid = this.#result([]);
    this.#last = this.valid;
    const schema = properties as JsonSchema;
    const values = new Map(Object.entries(schema.properties ?? {}));
    const required = new Set(schema.required);
    this.other = otherOf(schema);
    this.readsAll = this.other !== undefined;
    if (this.readsAll) for (const name of sdkProperties) values.set(name, values.get(name) ?? {});
    this.#named = new Set([...values.keys()].map(pathOf));
    this.#checks = [...new Set([...values.keys(), ...required])].map((name) => ({
      name,
      path: pathOf(name),
      isRequired: required.has(name),
      value: new ValueSchema(values.get(name) ?? {}),
    }));
    const checkOf: (PropertyCheck | undefined)[] = [];
    for (const check of this.#checks)
      if (!this.readsAll || this.#named.has(check.path)) checkOf[check.path] = check;
    this.#checkOf = Array.from(checkOf);
    const others = this.other === undefined ? MemberMask.Types : 0;
    this.masks = Uint32Array.from({ length: Math.max(1, checkOf.length) }, (_, path) => {
      const check = checkOf[path];
      if (check === undefined) return others;
      return check.value.passing | (check.isRequired ? MemberMask.Required : 0);
    });
    // Names that are stored alike have one path. Then only `check` can decide.
    const paths = new Set(this.#checks.map(({ path }) => path));
    this.requiredCount =
      paths.size === this.#checks.length ? required.size : Number.POSITIVE_INFINITY;
  }

  /** Returns the check of a path; undefined if the schema does not name the property. */
  checkOf(path: number): PropertyCheck | undefined {
    return path < this.#checkOf.length ? this.#checkOf[path] : undefined;
  }

  /** Checks the properties of one event. */
  check(members: SchemaMembers): SchemaCheck {
    let errors: ErrorList | undefined;
    for (const { name, path, isRequired, value } of this.#checks) {
      const entry = members.entryOf(path);
      if (entry === 0) {
        if (isRequired) {
          errors ??= new ErrorList();
          errors.add(name, missing);
        }
      } else if (!mayPassAt(value, members, entry)) {
        errors ??= new ErrorList();
        value.explain(valueAt(members, entry), name, errors);
      }
    }
    if (this.other !== undefined) errors = this.#checkOthers(members, this.other, errors);
    return errors === undefined ? this.valid : this.#invalid(errors.texts);
  }

  /** Many events of a faulty client have the same errors. */
  #invalid(errors: readonly string[]): SchemaCheck {
    if (!isSameList(errors, this.#last.errors)) this.#last = this.#result(errors);
    return this.#last;
  }

  #result(errors: readonly string[]): SchemaCheck {
    const { version, mode } = this;
    const result = errors.length === 0 ? { version, ok: true } : { version, ok: false, errors };
    return { schema: this, errors, stamp: mode === "stamp" ? schemaMember(result) : undefined };
  }

  #checkOthers(
    members: SchemaMembers,
    other: ValueSchema | false,
    before: ErrorList | undefined,
  ): ErrorList | undefined {
    let errors = before;
    for (let entry = members.nextProperty(0); entry !== 0; entry = members.nextProperty(entry)) {
      if (errors?.isFull) break;
      if (members.hasDollarAt(entry)) continue;
      if (this.#named.has(members.pathAt(entry))) continue;
      if (other !== false && mayPassAt(other, members, entry)) continue;
      const name = members.nameAt(entry);
      errors ??= new ErrorList();
      if (other === false) errors.add(name, notAllowed);
      else other.explain(valueAt(members, entry), name, errors);
    }
    return errors;
  }
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, at) => text === other[at]);
}

function mayPassAt(value: ValueSchema, members: SchemaMembers, entry: number): boolean {
  const body = members.bodyOf(entry);
  const [start, end] = [members.startOf(entry), members.endOf(entry)];
  return value.mayPass(body, start, end, members.typeOf(entry));
}

function valueAt(members: SchemaMembers, entry: number): unknown {
  const body = members.bodyOf(entry);
  return JSON.parse(body.toString("utf8", members.startOf(entry), members.endOf(entry)));
}

/** Returns the schema of additional properties: false for none, undefined for any. */
function otherOf({ additionalProperties: other = true }: JsonSchema) {
  if (typeof other === "boolean") return other ? undefined : false;
  return new ValueSchema(other);
}

const missing = "is required";
const notAllowed = "is not in the schema";

/** Maximum number of errors of an event that are compared, so that equal ones take no time. */
const errorsComparedMax = 10 * schemaErrorsMax;

/** Collects the first errors. Each has the path of a property and a rule, and never a value. */
class ErrorList {
  readonly texts: string[] = [];
  #count = 0;

  get isFull(): boolean {
    return this.texts.length >= schemaErrorsMax || this.#count >= errorsComparedMax;
  }

  add(path: string, rule: string): void {
    if (this.isFull) return;
    this.#count++;
    const text = `${shortened(path)}: ${rule}`;
    if (!this.texts.includes(text)) this.texts.push(text);
  }
}

function shortened(text: string): string {
  const whole = text.toWellFormed().replaceAll("\0", "\ufffd");
  if (whole.length <= pathCharsShownMax) return whole;
  return `${whole.slice(0, pathCharsShownMax).toWellFormed()}…`;
}

const tokensOf: Readonly<Record<string, readonly TokenType[]>> = {
  object: [TokenType.Object],
  array: [TokenType.Array],
  string: [TokenType.PlainString, TokenType.EscapedString, TokenType.EmptyString],
  number: [TokenType.Number],
  integer: [TokenType.Number],
  boolean: [TokenType.True, TokenType.False],
  null: [TokenType.Null],
};

const allTypes = Object.keys(tokensOf).filter((type) => type !== "integer");

/** Tokens whose bytes show whether the value passes. */
const readTokens: ReadonlySet<TokenType> = new Set([
  TokenType.PlainString,
  TokenType.EmptyString,
  TokenType.Number,
]);

function bitsOf(tokens: readonly TokenType[]): number {
  return tokens.reduce<number>((bits, token) => bits | (1 << token), 0);
}

/** Maximum number of texts that are compared one by one, which is faster for few texts. */
const comparedTextsMax = 8;
/** Maximum bytes of a text in an `enum`. */
const textBytesMax = 3 * ruleTextCharsMax;

/** The schema of one value, at any level. */
class ValueSchema {
  readonly #types: ReadonlySet<string>;
  readonly #typeRule: string;
  /** A bit for each TokenType of which every value passes. */
  readonly passing: number;
  /** A bit for each TokenType of which the bytes of the value decide. */
  readonly #read: number;
  readonly #needsInteger: boolean;
  readonly #values: ReadonlySet<unknown> | undefined;
  readonly #valuesRule: string;
  /** The texts of `#values`, in UTF-8. If there are many, their bytes as characters of Latin-1. */
  readonly #texts: readonly Buffer[];
  readonly #manyTexts: ReadonlySet<string> | undefined;
  readonly #numbers: NumberRange | undefined;
  readonly #strings: StringForm | undefined;
  readonly #array: ArrayForm | undefined;
  readonly #object: ObjectForm | undefined;

  constructor(schema: JsonSchema) {
    const types = schema.type === undefined ? allTypes : [schema.type].flat();
    this.#types = new Set(types);
    this.#typeRule = `must be ${types.map(withArticle).join(" or ")}`;
    this.#needsInteger = this.#types.has("integer") && !this.#types.has("number");
    const values = valuesOf(schema);
    this.#values = values === undefined ? undefined : new Set<unknown>(values);
    this.#valuesRule = values === undefined ? "" : `must be ${shownValues(values)}`;
    this.#texts = (values ?? []).flatMap((value) =>
      typeof value === "string" ? [Buffer.from(value)] : [],
    );
    this.#manyTexts =
      this.#texts.length > comparedTextsMax
        ? new Set(this.#texts.map((text) => text.toString("latin1")))
        : undefined;
    this.#numbers = NumberRange.of(schema);
    this.#strings = StringForm.of(schema);
    this.#array = ArrayForm.of(schema);
    this.#object = ObjectForm.of(schema);
    const tokens = types.flatMap((type) => tokensOf[type]!);
    this.passing = bitsOf(tokens.filter((token) => this.#passesAny(token)));
    this.#read = bitsOf(tokens.filter((token) => readTokens.has(token)));
  }

  /** Whether every value of a token type passes. */
  #passesAny(token: TokenType): boolean {
    const values = this.#values;
    switch (token) {
      case TokenType.Null:
        return values?.has(null) ?? true;
      case TokenType.False:
      case TokenType.True:
        return values?.has(token === TokenType.True) ?? true;
      case TokenType.Number:
        return values === undefined && this.#numbers === undefined && !this.#needsInteger;
      case TokenType.Array:
        return values === undefined && this.#array === undefined;
      case TokenType.Object:
        return values === undefined && this.#object === undefined;
      default:
        return values === undefined && this.#strings === undefined;
    }
  }

  /**
   * Returns whether a value at [start, end) has no error, from its bytes. For a value that must be
   * looked into, returns false. Then `explain` decides.
   */
  mayPass(body: Buffer, start: number, end: number, type: TokenType): boolean {
    const bit = 1 << type;
    if ((this.passing & bit) !== 0) return true;
    if ((this.#read & bit) === 0) return false;
    return type === TokenType.Number
      ? this.#passesNumber(numberAt(body, start, end))
      : this.#passesText(body, start + 1, end - 1);
  }

  #passesText(body: Buffer, start: number, end: number): boolean {
    if (this.#values !== undefined && !this.#hasText(body, start, end)) return false;
    return this.#strings === undefined || this.#strings.passes(body, start, end);
  }

  #passesNumber(value: number): boolean {
    if (this.#needsInteger && !Number.isInteger(value)) return false;
    if (this.#values?.has(value) === false) return false;
    return this.#numbers === undefined || this.#numbers.errorOf(value) === undefined;
  }

  /** Adds the errors of a value. */
  explain(value: unknown, path: string, errors: ErrorList): void {
    if (errors.isFull) return;
    if (!this.#types.has(typeName(value)) && !(this.#types.has("integer") && isInteger(value)))
      errors.add(path, this.#typeRule);
    else if (this.#values?.has(value) === false) errors.add(path, this.#valuesRule);
    else if (typeof value === "number") addIf(this.#numbers?.errorOf(value), path, errors);
    else if (typeof value === "string") addIf(this.#strings?.errorOf(value), path, errors);
    else if (Array.isArray(value)) this.#array?.explain(value, path, errors);
    else if (typeof value === "object" && value !== null)
      this.#object?.explain(value, path, errors);
  }

  #hasText(body: Buffer, start: number, end: number): boolean {
    if (this.#manyTexts !== undefined)
      return (
        end - start <= textBytesMax && this.#manyTexts.has(body.toString("latin1", start, end))
      );
    for (const text of this.#texts) if (isSameText(text, body, start, end)) return true;
    return false;
  }
}

function addIf(rule: string | undefined, path: string, errors: ErrorList): void {
  if (rule !== undefined) errors.add(path, rule);
}

function isSameText(text: Buffer, body: Buffer, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let at = 0; at < text.length; at++) if (text[at] !== body[start + at]) return false;
  return true;
}

/** Maximum digits of a number whose digits are an exact integer. */
const exactDigitsMax = 15;
const powersOfTen = Array.from({ length: exactDigitsMax + 1 }, (_, power) => 10 ** power);

/** Returns the value of a number token. Short decimals are converted without creating a text. */
function numberAt(body: Buffer, start: number, end: number): number {
  const first = body[start] === 0x2d ? start + 1 : start;
  if (end - first > exactDigitsMax) return Number(body.toString("latin1", start, end));
  let value = 0;
  let point = end - 1;
  for (let at = first; at < end; at++) {
    const digit = body[at]! - 0x30;
    if (digit === -2) point = at;
    else if (digit < 0 || digit > 9) return Number(body.toString("latin1", start, end));
    else value = 10 * value + digit;
  }
  // The quotient of two exact numbers is the nearest double, as for Number.
  if (point < end - 1) value /= powersOfTen[end - 1 - point]!;
  return first === start ? value : -value;
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isInteger(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value);
}

function withArticle(type: string): string {
  if (type === "null") return type;
  return `${/^[aio]/.test(type) ? "an" : "a"} ${type}`;
}

function valuesOf(schema: JsonSchema): readonly Scalar[] | undefined {
  if (!("const" in schema)) return schema.enum;
  const value = schema.const as Scalar;
  return schema.enum === undefined || schema.enum.includes(value) ? [value] : [];
}

function shownValues(values: readonly Scalar[]): string {
  const shown = values.slice(0, shownValuesMax).map((value) => JSON.stringify(value));
  const others = values.length - shown.length;
  const list = shown.map(shortened).join(", ") + (others > 0 ? ` or ${others} others` : "");
  return values.length > 1 ? `one of ${list}` : list;
}

class NumberRange {
  // An absent bound is NaN: every comparison with it is false.
  readonly #minimum: number;
  readonly #maximum: number;
  readonly #exclusiveMinimum: number;
  readonly #exclusiveMaximum: number;

  private constructor({
    minimum = Number.NaN,
    maximum = Number.NaN,
    exclusiveMinimum = Number.NaN,
    exclusiveMaximum = Number.NaN,
  }: JsonSchema) {
    this.#minimum = minimum;
    this.#maximum = maximum;
    this.#exclusiveMinimum = exclusiveMinimum;
    this.#exclusiveMaximum = exclusiveMaximum;
  }

  static of(schema: JsonSchema): NumberRange | undefined {
    const bounds = [
      schema.minimum,
      schema.maximum,
      schema.exclusiveMinimum,
      schema.exclusiveMaximum,
    ];
    return bounds.every((bound) => bound === undefined) ? undefined : new NumberRange(schema);
  }

  errorOf(value: number): string | undefined {
    if (value < this.#minimum) return `must be at least ${this.#minimum}`;
    if (value > this.#maximum) return `must be at most ${this.#maximum}`;
    if (value <= this.#exclusiveMinimum) return `must be more than ${this.#exclusiveMinimum}`;
    if (value >= this.#exclusiveMaximum) return `must be less than ${this.#exclusiveMaximum}`;
    return undefined;
  }
}

class StringForm {
  readonly #min: number;
  readonly #max: number;
  readonly #pattern: string;
  readonly #test: TextTest | undefined;
  readonly #bytesTest: BytesTest | undefined;

  private constructor({
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
    pattern,
  }: JsonSchema) {
    this.#min = minLength;
    this.#max = maxLength;
    this.#pattern = pattern ?? "";
    this.#test = pattern === undefined ? undefined : compilePattern(pattern);
    this.#bytesTest = pattern === undefined ? undefined : compileBytesPattern(pattern);
  }

  static of(schema: JsonSchema): StringForm | undefined {
    const { minLength, maxLength, pattern } = schema;
    const isPlain = minLength === undefined && maxLength === undefined && pattern === undefined;
    return isPlain ? undefined : new StringForm(schema);
  }

  /** Checks a text without escapes, in UTF-8. */
  passes(body: Buffer, start: number, end: number): boolean {
    const bytes = end - start;
    // A character has at most four bytes.
    if (bytes > this.#max || bytes < 4 * this.#min) {
      const characters = charactersIn(body, start, end);
      if (characters > this.#max || characters < this.#min) return false;
    }
    if (this.#bytesTest === undefined) return true;
    return bytes <= patternBytesMax && this.#bytesTest(body, start, end);
  }

  errorOf(text: string): string | undefined {
    const bytes = Buffer.byteLength(text);
    if (this.#min > 0 || this.#max < bytes) {
      const characters = charactersOf(text);
      if (characters < this.#min) return `must have at least ${this.#min} characters`;
      if (characters > this.#max) return `must have at most ${this.#max} characters`;
    }
    if (this.#test === undefined) return undefined;
    if (bytes > patternBytesMax)
      return `must have at most ${patternBytesMax} bytes, because it has a pattern`;
    return this.#test(text) ? undefined : `must match ${shortened(this.#pattern)}`;
  }
}

/** Returns the number of characters (code points) of UTF-8. */
function charactersIn(body: Buffer, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if ((body[at]! & 0xc0) !== 0x80) count++;
  return count;
}

function charactersOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

class ArrayForm {
  readonly #min: number;
  readonly #max: number;
  readonly #items: ValueSchema | undefined;

  private constructor({ minItems = 0, maxItems = Number.POSITIVE_INFINITY, items }: JsonSchema) {
    this.#min = minItems;
    this.#max = maxItems;
    this.#items = items === undefined ? undefined : new ValueSchema(items);
  }

  static of(schema: JsonSchema): ArrayForm | undefined {
    const { items, minItems, maxItems } = schema;
    const isAny = items === undefined && minItems === undefined && maxItems === undefined;
    return isAny ? undefined : new ArrayForm(schema);
  }

  explain(values: readonly unknown[], path: string, errors: ErrorList): void {
    if (values.length < this.#min) errors.add(path, `must have at least ${this.#min} items`);
    if (values.length > this.#max) errors.add(path, `must have at most ${this.#max} items`);
    if (this.#items === undefined) return;
    for (let at = 0; at < values.length && !errors.isFull; at++)
      this.#items.explain(values[at], `${path}[${at}]`, errors);
  }
}

class ObjectForm {
  readonly #values: ReadonlyMap<string, ValueSchema>;
  readonly #required: readonly string[];
  readonly #other: ValueSchema | false | undefined;

  private constructor(schema: JsonSchema) {
    this.#values = new Map(
      Object.entries(schema.properties ?? {}).map(([name, one]) => [name, new ValueSchema(one)]),
    );
    this.#required = schema.required ?? [];
    this.#other = otherOf(schema);
  }

  static of(schema: JsonSchema): ObjectForm | undefined {
    const { properties, required, additionalProperties = true } = schema;
    const isAny = properties === undefined && required === undefined;
    return isAny && additionalProperties === true ? undefined : new ObjectForm(schema);
  }

  explain(value: object, path: string, errors: ErrorList): void {
    const members = value as Readonly<Record<string, unknown>>;
    for (const name of this.#required) {
      if (errors.isFull) return;
      if (!Object.hasOwn(members, name)) errors.add(`${path}.${name}`, missing);
    }
    // Not all names of the schema, because an object can be shorter than they are.
    for (const name of Object.keys(members)) {
      if (errors.isFull) return;
      const one = this.#values.get(name) ?? this.#other;
      if (one === false) errors.add(`${path}.${name}`, notAllowed);
      else one?.explain(members[name], `${path}.${name}`, errors);
    }
  }
}
