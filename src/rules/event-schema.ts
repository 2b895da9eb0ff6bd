// Checks the properties of events against the schemas of a project. The addon decides about most
// values from their bytes. Those of which it is not sure are parsed here, also for messages.

import { Buffer } from "node:buffer";
import type {
  NumberCheck,
  SchemaCheckWriter,
  TextCheck,
  ValueCheck,
} from "../records/schema-checks.ts";
import { TokenType } from "../records/table.ts";
import { schemaErrorsMax, schemaMember } from "../records/verdict.ts";
import { storableText } from "./compiled-rule.ts";
import type { EventSchema, Scalar, SchemaMode } from "./rules-file.ts";
import {
  compilePattern,
  hasEndOf,
  patternBytesMax,
  stepsOfPattern,
  type TextTest,
} from "./schema-pattern.ts";
import type { JsonSchema } from "./schema-subset.ts";

/** The members of the `properties` of one event. An entry is a number from 1 on. */
export interface SchemaMembers {
  /** Returns the buffer with the value of an entry, at [startOf, endOf). */
  bodyOf(entry: number): Buffer;
  /** Returns the last member with a path, or 0. */
  entryOf(path: number): number;
  /** Whether the addon is sure that the value of an entry passes the schema. */
  isSure(entry: number): boolean;
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

interface SchemaOptions {
  /** Returns the number of a member of `properties`, by its name. */
  readonly pathOf: (name: string) => number;
  /** Gets the checks of the schema. */
  readonly checks: SchemaCheckWriter;
  /** An element for each `SchemaResult`. */
  readonly counts: Float64Array;
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

interface PropertySchema {
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
  /** The offset of the checks of the addon. */
  readonly checks: number;
  readonly #properties: readonly PropertySchema[];
  readonly #named: ReadonlySet<number>;
  /** The last result with errors. */
  #last: SchemaCheck;
  /** The schema of all other properties: false for none, undefined for any. */
  readonly #other: ValueSchema | false | undefined;

  constructor(
    { event, version, mode, properties }: EventSchema,
    { pathOf, checks, counts }: SchemaOptions,
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
    this.#other = otherOf(schema);
    this.readsAll = this.#other !== undefined;
    if (this.readsAll) for (const name of sdkProperties) values.set(name, values.get(name) ?? {});
    this.#named = new Set([...values.keys()].map(pathOf));
    this.#properties = [...new Set([...values.keys(), ...required])].map((name) => ({
      name,
      path: pathOf(name),
      isRequired: required.has(name),
      value: new ValueSchema(values.get(name) ?? {}),
    }));
    this.checks = this.#addTo(checks);
  }

  #addTo(checks: SchemaCheckWriter): number {
    const other = this.#other === false ? false : this.#other?.check;
    const byPath = Map.groupBy(this.#properties, ({ path }) => path);
    const checkOf = ([first, ...others]: readonly PropertySchema[]): ValueCheck | undefined => {
      const { name, path, value } = first!;
      // Names that are stored alike have one path. Each of their schemas must be checked.
      if (others.length > 0) return undefined;
      const isOther = this.readsAll && !this.#named.has(path) && !name.startsWith("$");
      return isOther ? other || undefined : value.check;
    };
    const properties = [...byPath].map(([path, named]) => ({
      path,
      isRequired: named.some(({ isRequired }) => isRequired),
      value: checkOf(named),
    }));
    return checks.add({ properties, other });
  }

  /** Checks the properties of one event. */
  check(members: SchemaMembers): SchemaCheck {
    const errors = new ErrorList();
    for (const { name, path, isRequired, value } of this.#properties) {
      if (errors.isFull) break;
      const entry = members.entryOf(path);
      if (entry !== 0) explainAt(members, entry, { value, name, errors });
      else if (isRequired) errors.add(name, missing);
    }
    if (this.#other !== undefined) this.#checkOthers(members, this.#other, errors);
    return errors.texts.length === 0 ? this.valid : this.#invalid(errors.texts);
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

  #checkOthers(members: SchemaMembers, other: ValueSchema | false, errors: ErrorList): void {
    for (let entry = members.nextProperty(0); entry !== 0; entry = members.nextProperty(entry)) {
      if (errors.isFull) return;
      if (members.hasDollarAt(entry)) continue;
      if (this.#named.has(members.pathAt(entry))) continue;
      if (other === false) errors.add(members.nameAt(entry), notAllowed);
      else explainAt(members, entry, { value: other, errors });
    }
  }
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, at) => text === other[at]);
}

/** Adds the errors of a member, unless the addon is sure that it has none. */
function explainAt(
  members: SchemaMembers,
  entry: number,
  of: { readonly value: ValueSchema; readonly name?: string; readonly errors: ErrorList },
): void {
  if (members.isSure(entry)) return;
  const { value, name = members.nameAt(entry), errors } = of;
  const body = members.bodyOf(entry);
  const text = body.toString("utf8", members.startOf(entry), members.endOf(entry));
  value.explain(JSON.parse(text), name, errors);
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

/** The schema of one value, at any level. */
class ValueSchema {
  readonly #types: ReadonlySet<string>;
  readonly #typeRule: string;
  readonly #needsInteger: boolean;
  readonly #values: ReadonlySet<unknown> | undefined;
  readonly #valuesRule: string;
  readonly #numbers: NumberRange;
  readonly #strings: StringForm;
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
    this.#numbers = new NumberRange(schema);
    this.#strings = new StringForm(schema);
    this.#array = ArrayForm.of(schema);
    this.#object = ObjectForm.of(schema);
  }

  /** The check of the addon. */
  get check(): ValueCheck {
    const tokens = [...this.#types].flatMap((type) => tokensOf[type]!);
    const reads = (token: TokenType): boolean => tokens.includes(token) && !this.#passesAny(token);
    return {
      tokens: tokens.filter((token) => this.#passesAny(token)),
      number: reads(TokenType.Number) ? this.#numberCheck() : undefined,
      text: reads(TokenType.PlainString) ? this.#textCheck() : undefined,
    };
  }

  /** Returns the allowed values of a type; undefined if no value is excluded. */
  #allowed<Value>(isOfType: (value: unknown) => value is Value): Value[] | undefined {
    return this.#values === undefined ? undefined : [...this.#values].filter(isOfType);
  }

  #numberCheck(): NumberCheck | undefined {
    const values = this.#allowed(isNumber);
    if (values?.length === 0) return undefined;
    const { minimum, maximum, above, below } = this.#numbers;
    return { isInteger: this.#needsInteger, minimum, maximum, above, below, values };
  }

  #textCheck(): TextCheck | undefined {
    const texts = this.#allowed(isStorableText);
    if (texts?.length === 0) return undefined;
    return { ...this.#strings.check, texts };
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
        return values === undefined && this.#numbers.isAny && !this.#needsInteger;
      case TokenType.Array:
        return values === undefined && this.#array === undefined;
      case TokenType.Object:
        return values === undefined && this.#object === undefined;
      default:
        return values === undefined && this.#strings.isAny;
    }
  }

  /** Adds the errors of a value. */
  explain(value: unknown, path: string, errors: ErrorList): void {
    if (errors.isFull) return;
    if (!this.#types.has(typeName(value)) && !(this.#types.has("integer") && isInteger(value)))
      errors.add(path, this.#typeRule);
    else if (this.#values?.has(value) === false) errors.add(path, this.#valuesRule);
    else if (typeof value === "number") addIf(this.#numbers.errorOf(value), path, errors);
    else if (typeof value === "string") addIf(this.#strings.errorOf(value), path, errors);
    else if (Array.isArray(value)) this.#array?.explain(value, path, errors);
    else if (typeof value === "object" && value !== null)
      this.#object?.explain(value, path, errors);
  }
}

function addIf(rule: string | undefined, path: string, errors: ErrorList): void {
  if (rule !== undefined) errors.add(path, rule);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function isInteger(value: unknown): boolean {
  return isNumber(value) && Number.isInteger(value);
}

/** Stored texts have no lone surrogates. */
function isStorableText(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed();
}

function withArticle(type: string): string {
  if (type === "null") return type;
  return `${/^[aio]/.test(type) ? "an" : "a"} ${type}`;
}

/** Returns the values that pass, as they are stored. */
function valuesOf(schema: JsonSchema): readonly Scalar[] | undefined {
  const values = schema.enum?.map(storable);
  if (!("const" in schema)) return values;
  const value = storable(schema.const as Scalar);
  return values === undefined || values.includes(value) ? [value] : [];
}

function storable(value: Scalar): Scalar {
  return typeof value === "string" ? storableText(value) : value;
}

function shownValues(values: readonly Scalar[]): string {
  const shown = values.slice(0, shownValuesMax).map((value) => JSON.stringify(value));
  const others = values.length - shown.length;
  const list = shown.map(shortened).join(", ") + (others > 0 ? ` or ${others} others` : "");
  return values.length > 1 ? `one of ${list}` : list;
}

class NumberRange {
  // An absent bound is NaN: every comparison with it is false.
  readonly minimum: number;
  readonly maximum: number;
  readonly above: number;
  readonly below: number;

  constructor({
    minimum = Number.NaN,
    maximum = Number.NaN,
    exclusiveMinimum = Number.NaN,
    exclusiveMaximum = Number.NaN,
  }: JsonSchema) {
    this.minimum = minimum;
    this.maximum = maximum;
    this.above = exclusiveMinimum;
    this.below = exclusiveMaximum;
  }

  get isAny(): boolean {
    return [this.minimum, this.maximum, this.above, this.below].every(Number.isNaN);
  }

  errorOf(value: number): string | undefined {
    if (value < this.minimum) return `must be at least ${this.minimum}`;
    if (value > this.maximum) return `must be at most ${this.maximum}`;
    if (value <= this.above) return `must be more than ${this.above}`;
    if (value >= this.below) return `must be less than ${this.below}`;
    return undefined;
  }
}

class StringForm {
  readonly #min: number;
  readonly #max: number;
  readonly #pattern: string | undefined;
  readonly #test: TextTest | undefined;

  constructor({ minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern }: JsonSchema) {
    this.#min = minLength;
    this.#max = maxLength;
    this.#pattern = pattern;
    this.#test = pattern === undefined ? undefined : compilePattern(pattern);
  }

  get isAny(): boolean {
    return this.#min === 0 && this.#max === Number.POSITIVE_INFINITY && this.#test === undefined;
  }

  /** The check of the addon, for any of the texts. */
  get check(): Omit<TextCheck, "texts"> {
    const pattern = this.#pattern;
    return {
      charactersMin: this.#min,
      charactersMax: this.#max,
      bytesMax: pattern === undefined ? Number.POSITIVE_INFINITY : patternBytesMax,
      steps: pattern === undefined ? [] : stepsOfPattern(pattern),
      hasEnd: pattern !== undefined && hasEndOf(pattern),
    };
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
    return this.#test(text) ? undefined : `must match ${shortened(this.#pattern!)}`;
  }
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
