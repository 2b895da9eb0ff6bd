import fc from "fast-check";
import { expect, test } from "vitest";
import { Found, FoundPath, FoundType } from "../../src/records/found-members.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import {
  createRowTasks,
  listRow,
  RowTask,
  RowTasks,
  TaskKind,
} from "../../src/records/row-tasks.ts";
import { ScanStatus } from "../../src/records/table.ts";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { compilePattern, patternBytesMax, patternError } from "../../src/rules/schema-pattern.ts";
import {
  compiled,
  hasValues,
  type Json,
  oracleOf,
  pathOf,
  personal,
  properties,
  type Schema,
  schema,
  schemaFile,
  stampBy,
  unusualJson,
} from "./schema-kit.ts";

const scanner = createNativeScanner(4);

interface Judgement {
  /** Whether all properties pass for sure. */
  readonly isSure: boolean;
  /** The names of listed properties, and whether each passes for sure. */
  readonly members: ReadonlyMap<string, boolean>;
}

/** Returns the task of the first row. */
function taskOf(kind: TaskKind, schemaChecks: number): Uint32Array {
  const tasks = createRowTasks(1);
  tasks[RowTasks.Count] = 1;
  listRow(tasks, 0, schemaChecks);
  tasks[RowTasks.Rows + RowTask.Kind] = kind;
  return tasks;
}

/** Returns what the addon finds out about the properties of an event, which are JSON. */
function judge({ texts, names, schemas }: CompiledRules, text: string): Judgement {
  const body = Buffer.from(`{"event":"order","properties":${text}}`);
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  const find = (kind: TaskKind): Uint32Array => {
    const found = new Uint32Array(100 * Found.Words);
    const tasks = taskOf(kind, schemas[0]!.checks);
    const changes = new Uint32Array(1);
    const count = scanner.findMembers(body, tasks, texts, names.slots, found, changes);
    expect(tasks[RowTasks.Rows + RowTask.Kind]).toBe(count > 0 ? TaskKind.List : TaskKind.Valid);
    return found.subarray(0, count * Found.Words);
  };
  const found = find(TaskKind.List);
  const isSure = (at: number): boolean => (found[at + Found.Type]! & FoundType.Sure) !== 0;
  expect(found[Found.Path]).toBe(FoundPath.Schema);
  // With ListIfAny, the same entries are there, or none.
  expect(find(TaskKind.ListIfAny)).toEqual(isSure(0) ? new Uint32Array(0) : found);
  const members = new Map<string, boolean>();
  for (let at = Found.Words; at < found.length; at += Found.Words) {
    const [start, end] = [found[at + Found.Start]!, found[at + Found.ValueStart]!];
    const name = JSON.parse(/^"(?:\\.|[^"])*"/.exec(body.toString("utf8", start, end))![0]);
    members.set(name, isSure(at));
  }
  return { isSure: isSure(0), members };
}

function valueRules(value: Schema): CompiledRules {
  return compiled(schemaFile({ required: ["a"], properties: { a: value } }));
}

function isSureOf(rules: CompiledRules, text: string): boolean {
  const { isSure, members } = judge(rules, `{"b":1,"a":${text}}`);
  expect(members.get("a")).toBe(isSure);
  return isSure;
}

const digitsMax = 15;

/** Whether the addon must be sure of a valid value. */
function isOrdinary(value: Json, form: Schema): boolean {
  if (typeof value === "number") {
    const text = JSON.stringify(value);
    return !text.includes("e") && text.replaceAll(/\D/g, "").length <= digitsMax;
  }
  if (typeof value === "string") {
    const isPlain = JSON.stringify(value) === `"${value}"`;
    return isPlain && (!("pattern" in form) || /^\p{ASCII}*$/u.test(value));
  }
  return typeof value !== "object" || value === null || Object.keys(form).length === 0;
}

test("a schema judges random properties like Ajv, and the addon is sure of ordinary ones", () => {
  const seen = { sure: 0, ordinary: 0, invalid: 0, sureInInvalid: 0 };
  fc.assert(
    fc.property(schema, fc.array(properties, { minLength: 8, maxLength: 8 }), (form, sent) => {
      const oracle = oracleOf(form);
      const rules = compiled(schemaFile(form));
      const values = (form["properties"] ?? {}) as Readonly<Record<string, Schema>>;
      const other = form["additionalProperties"] as Schema | boolean | undefined;
      const formOf = (name: string): Schema =>
        Object.hasOwn(values, name) ? values[name]! : typeof other === "object" ? other : {};
      for (const one of sent) {
        const isOrdinaryEvent = Object.entries(one).every(([name, value]) =>
          isOrdinary(value, formOf(name)),
        );
        for (const text of [JSON.stringify(one), unusualJson(one)]) {
          const isValid = oracle(JSON.parse(text));
          const faults = oracle.errors ?? [];
          const paths = faults.map((fault) => pathOf(fault));
          // The path of a property that is wrong itself, or one of whose parts is.
          const wrong = new Set(faults.map((fault) => pathOf(fault, 1)));
          const { isSure, members } = judge(rules, text);
          seen[isValid ? "sure" : "invalid"] += Number(isSure || !isValid);
          if (!isValid) expect(isSure, text).toBe(false);
          for (const [name, isSureOfIt] of members) {
            if (!isSureOfIt) continue;
            expect(wrong, text).not.toContain(name);
            if (!isValid) seen.sureInInvalid++;
          }
          if (isOrdinaryEvent && isValid && text === JSON.stringify(one)) {
            seen.ordinary++;
            expect(isSure, text).toBe(true);
          }
          const { version, ok, errors = [] } = stampBy(rules, text)!;
          expect([version, ok, errors.length > 0]).toEqual([3, isValid, !isValid]);
          expect(errors.length).toBeLessThanOrEqual(5);
          for (const error of errors) {
            expect(paths.some((path) => error.startsWith(`${path}: `))).toBe(true);
            expect(error).not.toContain(personal);
          }
        }
      }
    }),
    { numRuns: 300 },
  );
  expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(50);
}, 30_000);

test("the addon is sure of a property that no schema names only if its name is exempt", () => {
  const rules = compiled(schemaFile({ properties: { a: {} }, additionalProperties: false }));
  const text = '{"a":1,"$b":1,"token":"t","distinct_id":"u"}';
  expect(judge(rules, text).isSure).toBe(true);
  expect(judge(rules, '{"$b":1,"b":1}')).toEqual({
    isSure: false,
    members: new Map([
      ["$b", true],
      ["b", false],
    ]),
  });
});

test.each([
  ["absent properties", '{"event":"order"}', {}, true],
  ["null", '{"event":"order","properties":null}', {}, true],
  ["absent properties, of which one is required", '{"event":"order"}', { required: ["a"] }, false],
  ["a text", '{"event":"order","properties":"a"}', {}, false],
  ["an empty list", '{"event":"order","properties":[]}', {}, false],
])("the addon judges %s", (_, text, form, isSure) => {
  const { texts, names, schemas } = compiled(schemaFile({ type: "object", ...form }));
  const body = Buffer.from(text);
  scanner.scan(body);
  const tasks = taskOf(TaskKind.ListIfAny, schemas[0]!.checks);
  const found = new Uint32Array(10 * Found.Words);
  const count = scanner.findMembers(body, tasks, texts, names.slots, found, found.slice(0, 1));
  expect(count).toBe(isSure ? 0 : 1);
});

interface NumberForm extends Schema {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly enum?: readonly number[];
}
const bound = fc.constantFrom(-3, 0, 0.1, 1.5, 9.99, 100, 1e15, 123_456_789_012_345.67);
const type = fc.constantFrom("integer", "number");
const numberForm: fc.Arbitrary<NumberForm> = fc.oneof(
  fc.record({ type, minimum: bound }, { requiredKeys: ["minimum"] }),
  fc.record({ type, maximum: bound }, { requiredKeys: ["maximum"] }),
  fc
    .record({ type, exclusiveMinimum: bound, exclusiveMaximum: bound }, { requiredKeys: [] })
    .filter(hasValues),
  fc
    .record({
      type,
      enum: fc.uniqueArray(fc.oneof(bound, fc.integer({ min: -120, max: 120 })), { minLength: 1 }),
    })
    .map((form) => {
      const isWhole = form.type !== "integer" || form.enum.every(Number.isInteger);
      return isWhole ? form : { ...form, type: "number" };
    }),
);
const digits = fc
  .array(fc.constantFrom(..."0019"), { minLength: 1, maxLength: 25 })
  .map((all) => all.join(""));
const numberText = fc.oneof(
  bound.map((value) => JSON.stringify(value)),
  fc.integer({ min: -120, max: 120 }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc
    .tuple(fc.constantFrom("", "-"), digits, fc.constantFrom("", "."), digits)
    .map(([sign, one, point, other]) => {
      const whole = one.replace(/^0+(?=.)/, "");
      return sign + whole + (point === "" ? "" : point + other);
    }),
  fc.constantFrom("-0", "0e5", "1e3", "1E-3", "1e400", "-1e400", "5e-324"),
);

function isValidNumber(value: number, form: NumberForm): boolean {
  return (
    (form.type !== "integer" || Number.isInteger(value)) &&
    !(value < form.minimum!) &&
    !(value > form.maximum!) &&
    !(value <= form.exclusiveMinimum!) &&
    !(value >= form.exclusiveMaximum!) &&
    form.enum?.includes(value) !== false
  );
}

test("the addon is sure of ordinary valid numbers, and of no invalid one", () => {
  const seen = { ordinary: 0, long: 0, invalid: 0 };
  fc.assert(
    fc.property(numberForm, fc.array(numberText, { minLength: 30, maxLength: 30 }), (form, all) => {
      const rules = valueRules(form);
      for (const text of all) {
        const isValid = isValidNumber(Number(text), form);
        const isSure = isSureOf(rules, text);
        const isShort = !/e/i.test(text) && text.replaceAll(/\D/g, "").length <= digitsMax;
        if (!isValid) seen.invalid++;
        else if (isShort) seen.ordinary++;
        else if (isSure) seen.long++;
        expect(isSure && !isValid, `${text} ${JSON.stringify(form)}`).toBe(false);
        if (isShort) expect(isSure, `${text} ${JSON.stringify(form)}`).toBe(isValid);
      }
    }),
    { numRuns: 500 },
  );
  expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(100);
}, 30_000);

test.each([
  ["a long fraction", "12.340000000000002", { minimum: 0, maximum: 13 }],
  ["a long integer", "12345678901234567890", { type: "integer", minimum: 0 }],
  ["a negative long fraction", "-0.00012345678901234567", { maximum: 0 }],
])("the addon is sure of %s within its bounds", (_, text, form) => {
  expect(isSureOf(valueRules(form), text)).toBe(true);
});

const atom = fc.constantFrom("a", "b", ".", "\\d", "\\w", "\\S", "[ab]", "[^a]", "[a-z-]", "\\.");
const repetition = fc.constantFrom("", "*", "+", "?", "{0,50}", "{3}", "{2,3}");
const text = fc
  .array(fc.constantFrom(..."ab1-._abab~", "é", "€", "😀"), { maxLength: 12 })
  .map((all) => all.join(""));

test("the addon is sure of ASCII texts that match a pattern, and of no text that does not", () => {
  const seen = { ascii: 0, other: 0, wrong: 0 };
  fc.assert(
    fc.property(
      fc.array(fc.tuple(atom, repetition), { maxLength: 6 }),
      fc.constantFrom("", "$"),
      fc.array(text, { minLength: 20, maxLength: 20 }),
      (parts, end, texts) => {
        const pattern = `^${parts.flat().join("")}${end}`;
        if (patternError(pattern) !== undefined) return;
        const matches = compilePattern(pattern);
        const rules = valueRules({ pattern });
        for (const one of texts) {
          const isSure = isSureOf(rules, JSON.stringify(one));
          const isAscii = /^\p{ASCII}*$/u.test(one);
          if (!matches(one)) seen.wrong++;
          else if (isSure) seen[isAscii ? "ascii" : "other"]++;
          if (isAscii) expect(isSure, `${pattern} ${one}`).toBe(matches(one));
          else if (isSure) expect(matches(one), `${pattern} ${one}`).toBe(true);
        }
      },
    ),
    { numRuns: 1_000 },
  );
  expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(100);
}, 30_000);

test.each([
  ["^[^@]+@[^@]+$", "grüße@例え", true],
  ["^[^@]{3}$", "é€😀", true],
  ["^[^@]{3}$", "é€😀é", false],
  ["^[^@]{2}", "é€😀", true],
  ["^[a-z]+", "aé", true],
  ["^[a-z]+$", "aé", false],
  // The class has the characters beyond ASCII except white space.
  ["^\\S+$", "é", false],
])("for the pattern %s, it is known whether the addon is sure of %s", (pattern, one, isSure) => {
  expect(isSureOf(valueRules({ pattern }), JSON.stringify(one))).toBe(isSure);
});

test("the addon is not sure of a long text with a pattern", () => {
  const rules = valueRules({ pattern: "^a*$" });
  expect(isSureOf(rules, `"${"a".repeat(patternBytesMax)}"`)).toBe(true);
  expect(isSureOf(rules, `"${"a".repeat(patternBytesMax + 1)}"`)).toBe(false);
});

test("the addon finds each of many texts and numbers", () => {
  const texts = Array.from({ length: 100 }, (_, index) => `${"é".repeat(index % 7)}${index}`);
  const numbers = Array.from({ length: 100 }, (_, index) => (index * 37 - 500) / 4);
  const rules = valueRules({ enum: [...texts, ...numbers] });
  for (const value of [...texts, ...numbers])
    expect(isSureOf(rules, JSON.stringify(value)), String(value)).toBe(true);
  for (const value of ["", "é", "100", "éé1", "x".repeat(5), 0.1, 1_000, -501, true, null])
    expect(isSureOf(rules, JSON.stringify(value)), String(value)).toBe(false);
});

test("the addon counts characters, not bytes", () => {
  const rules = valueRules({ type: "string", minLength: 2, maxLength: 3 });
  const lengths = [
    "",
    "a",
    "é",
    "😀",
    "éa",
    "😀😀",
    "abc",
    "😀é€",
    "abcd",
    "😀é€a",
    "ab".repeat(50),
  ];
  for (const one of lengths)
    expect(isSureOf(rules, JSON.stringify(one)), one).toBe(/^.{2,3}$/u.test(one));
});

test("names of a schema that are stored alike have no sure value", () => {
  const form = { properties: { "a\0": { type: "number" }, "a\ufffd": { type: "string" } } };
  const rules = compiled(schemaFile(form));
  expect(judge(rules, '{"a\ufffd":1}').members).toEqual(new Map([["a\ufffd", false]]));
});
