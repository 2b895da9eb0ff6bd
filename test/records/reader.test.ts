import fc from "fast-check";
import { expect, test } from "vitest";
import { Part, type RecordField, recordFields } from "../../src/records/fields.ts";
import { Line, LineFlag, type RecordView } from "../../src/records/lines.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import { linesToPause, RecordReader } from "../../src/records/reader.ts";
import { TokenType } from "../../src/records/table.ts";
import { timestampTokenMs } from "../../src/records/timestamp.ts";
import { kinds } from "../../src/records/verdict.ts";
import { recordOf } from "../kit/effect-lines.ts";
import { eventLikeJson } from "../kit/event-like-json.ts";
import { take } from "../kit/items.ts";

const reader = new RecordReader(createNativeScanner(5));

const parts: Readonly<Record<string, Part>> = Object.fromEntries(
  Object.entries(recordFields).flatMap(([name, { part }]: [string, RecordField]) =>
    part === undefined ? [] : [[name, part]],
  ),
);
const nestedParts = {
  $set: Part.NestedSet,
  $set_once: Part.NestedSetOnce,
  $unset: Part.NestedUnset,
} as const;
const times = {
  timestamp: Line.Timestamp,
  timestamp_sent: Line.TimestampSent,
  received_at: Line.ReceivedAt,
  sent_at: Line.SentAt,
} as const;

type Members = Readonly<Record<string, unknown>>;

interface Said {
  readonly values?: Members;
  readonly fault?: string;
}

function read(lines: readonly string[]): { said: Map<number, Said>; taken: boolean[] } {
  const said = new Map<number, Said>();
  const taken = lines.map(() => false);
  const data = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const reading = reader.read(data, {
    record: (record) => {
      const { line, start, end } = record;
      expect(data.toString("utf8", start, end)).toBe(Buffer.from(lines[line]!).toString());
      taken[line] = record.isWritten;
      said.set(line, { values: valuesOf(record, data) });
    },
    unreadable: ({ reason }, line, start, end) => {
      expect(data.toString("utf8", start, end)).toBe(Buffer.from(lines[line]!).toString());
      said.set(line, { fault: reason });
    },
  });
  for (const _ of reading);
  return { said, taken };
}

function valuesOf(record: RecordView, data: Buffer): Members {
  const value = (part: Part): unknown => {
    if (record.type(part) === TokenType.Absent) return undefined;
    const [start, end] = [record.startOf(part), record.endOf(part)];
    const text = record.body.toString("utf8", start, end);
    expect(data.toString("utf8", start + record.shift, end + record.shift)).toBe(text);
    const parsed = JSON.parse(text) as unknown;
    expect(record.type(part)).toBe(typeOf(parsed, text));
    if (typeof parsed === "string") expect(record.text(part)).toBe(parsed);
    return parsed;
  };
  const all = (of: Readonly<Record<string, Part>>, before: string) =>
    Object.entries(of).map(([name, part]) => [before + name, value(part)]);
  return {
    ...(Object.fromEntries([...all(parts, ""), ...all(nestedParts, "in ")]) as Members),
    ...Object.fromEntries(Object.entries(times).map(([name, word]) => [name, record.ms(word)])),
    projectId: record.projectId,
    kindNumber: record.kind,
    hasProfile: record.has(LineFlag.PersonProfile),
    historical: record.has(LineFlag.Historical),
    hasGroups: record.type(Part.Groups) > TokenType.Null,
    mayWrite: record.has(LineFlag.HasWrites),
  };
}

function typeOf(value: unknown, text: string): TokenType {
  if (value === null) return TokenType.Null;
  if (value === "") return TokenType.EmptyString;
  if (typeof value === "string")
    return text.includes("\\") ? TokenType.EscapedString : TokenType.PlainString;
  if (typeof value === "number") return TokenType.Number;
  if (typeof value === "boolean") return value ? TokenType.True : TokenType.False;
  return Array.isArray(value) ? TokenType.Array : TokenType.Object;
}

function parsed(line: string): Said | undefined {
  if (line.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { fault: "not_json" };
  }
  if (!isObject(value)) return { fault: "not_a_record" };
  const nested = isObject(value["properties"]) ? value["properties"] : {};
  const ms = (text: unknown): number =>
    typeof text === "string"
      ? timestampTokenMs(Buffer.from(JSON.stringify(text)), 0, JSON.stringify(text).length)
      : Number.NaN;
  const { project_id: project, kind } = value;
  const known = (kinds as readonly unknown[]).indexOf(kind);
  return {
    values: {
      ...Object.fromEntries(Object.keys(parts).map((name) => [name, value[name]])),
      ...Object.fromEntries(
        Object.keys(nestedParts).map((name) => [`in ${name}`, own(nested, name)]),
      ),
      ...Object.fromEntries(Object.keys(times).map((name) => [name, ms(value[name])])),
      projectId: typeof project === "string" && /^[\w-]{1,64}$/.test(project) ? project : "",
      kindNumber: known < 0 ? kinds.length : known,
      hasProfile: value["person_profile"] !== false,
      historical: value["historical"] === true,
      hasGroups: (own(nested, "$groups") ?? null) !== null,
      mayWrite: mayWrite(value, nested),
    },
  };
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function own(members: Members, name: string): unknown {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

function mayWrite(value: Members, nested: Members): boolean {
  const isSomething = (one: unknown): boolean =>
    (one ?? null) !== null && !/^(\{\}|\[\])$/.test(JSON.stringify(one));
  const names = ["$set", "$set_once", "$unset"];
  return (
    (own(nested, "$groups") ?? null) !== null ||
    names.some((name) => isSomething(value[name]) || isSomething(own(nested, name)))
  );
}

function agreed(lines: readonly string[]): boolean[] {
  const { said, taken } = read(lines);
  for (const [index, line] of lines.entries()) {
    const expected = parsed(line);
    const found = said.get(index);
    const always = taken[index] ? {} : { mayWrite: expect.any(Boolean) as boolean };
    expect(found).toEqual(
      expected?.values === undefined ? expected : { values: { ...expected.values, ...always } },
    );
    if (!taken[index] && found?.values !== undefined) expect(found.values["mayWrite"]).toBe(true);
  }
  return taken;
}

test("the reader finds the members of each record that the gateway writes", () => {
  fc.assert(
    fc.property(eventLikeJson, (body) => {
      const lines = linesOf(body);
      // The table does not identify a name that contains an escape.
      for (const [index, isTaken] of agreed(lines).entries())
        expect(isTaken || lines[index]!.includes("\\")).toBe(true);
    }),
    { numRuns: 150 },
  );
});

function linesOf(body: string): readonly string[] {
  try {
    return take(body).lines.map((line) => line.trimEnd());
  } catch {
    return [];
  }
}

test("the reader finds the members of a record with replaced values", () => {
  const event = { event: "e", distinct_id: "u", timestamp: "soon", uuid: '}"],{' };
  const [line = ""] = take({ batch: [{ ...event, $set: { a: 1 } }] }).lines.map((text) =>
    text.trimEnd(),
  );
  const more = line.slice(0, -1);
  expect(agreed([line, `${more},"kind":"set"}`, `${more},"replaced":{}}`])).toEqual([
    true,
    false,
    false,
  ]);
});

test("the reader finds the members by their offsets in a record with the version of its rules", () => {
  const line = recordOf();
  const withRules = (text: string): string => line.replace(',"kind"', `,"rules":${text},"kind"`);
  const versions = ["1", "42", "9007199254740991", "0", "01", "-1", "1.5", '"1"', "null"];
  expect(agreed(versions.map(withRules))).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
    false,
    false,
    false,
  ]);
});

test("the reader finds the members by their offsets in a record with the result of its schema", () => {
  const line = recordOf();
  const withSchema = (text: string): string => `${line.slice(0, -1)},"schema":${text}}`;
  const results = [
    '{"version":1,"ok":true}',
    '{"version":2,"ok":false,"errors":["a: \\"}] is required"]}',
    "null",
    "[]",
  ];
  expect(agreed(results.map(withSchema))).toEqual([true, true, false, false]);
});

test("the reader finds the members of every kind of record", () => {
  const lines = kinds.flatMap((kind) =>
    [true, false].flatMap((person_profile) =>
      [true, false].map((historical) => recordOf({ kind, person_profile, historical })),
    ),
  );
  expect(agreed(lines)).toEqual(lines.map(() => true));
  const projects = ["p", "p", "q", "p", "q", "q"].map((project_id) => recordOf({ project_id }));
  expect(agreed(projects)).toEqual(projects.map(() => true));
});

test("the reader finds the members of a line after any other line", () => {
  const others = ["timestamp_sent", "sent_at"].map((name) =>
    recordOf({ received_at: undefined, ip: undefined, kind: undefined, [name]: "x" }),
  );
  for (const other of [...others, recordOf({ ip: undefined }), recordOf({ kind: "alias" })])
    expect(agreed([recordOf(), other, recordOf()])).toEqual([true, expect.any(Boolean), true]);
});

const value = fc.constantFrom(
  null,
  true,
  false,
  0,
  1e20,
  "",
  " ",
  "x",
  "é",
  "\0",
  "\ud800",
  "a\nb",
  "{}",
  "𝄞".repeat(150),
  [],
  [1],
  ["a"],
  {},
  { a: 1 },
  { $set: { a: 1 } },
  { properties: {} },
  { $groups: { t: "k" }, $set_once: {}, $unset: [] },
  "$identify",
  "$merge_dangerously",
  "$exception",
  "identify",
  "group_identify",
  "survey",
  "2026-01-02T03:04:05.678Z",
  "0000-01-01T00:00:00.000Z",
  "9999-12-31T23:59:60.000Z",
  "2026-01-02T24:00:00.000Z",
  "Thu Jan 01 2026 00:00:00",
  "2026-01-02T03:04:05.67é",
  "2026-01-02",
  "0190C8B2-7f3a-7c11-9d2e-3f4a5b6c7d8e",
  "10.1.2.3",
  "$posthog_cookieless",
);
const names = [
  ...Object.keys(parts),
  ...Object.keys(times),
  "person_profile",
  "historical",
  "batch",
];
const changes = [
  (line: string) => line,
  (line: string) => line.replace(",", ", "),
  (line: string) => line.replace("{", "{ "),
  (line: string) => line.replace('"kind"', '"\\u006bind"'),
  (line: string) => line.replace('"e"', '"\\u0024exception"'),
  (line: string) => line.replace('"127.0.0.1"', '"\\u0031"'),
  (line: string) => line.replace("{", '{"uuid":"x",'),
  (line: string) => line.replace('"properties":{', '"properties":{"\\u0024set":{"a":1},'),
  (line: string) => line.replace('"properties":{', '"properties":{"$set":1,"$set":{"a":2},'),
  (line: string) => line.replace(/\}$/, ""),
  (line: string) => `${line} `,
  (line: string) => `${line},${line}`,
  () => "",
  () => " \r",
  () => "[]",
  () => '1]},{"batch":[1',
];
const last = ['"kind":"alias"', '"$set":{"last":1}', '"$unset":["last"]', '"event":"last"'];
last.push('"properties":{"$groups":{}}', '"project_id":"q"', '"\\u0024set":{"last":1}');
last.push('"timestamp":"2001-01-02T03:04:05.678Z"', '"historical":true', '"person_profile":1');
for (const member of last) changes.push((line: string) => line.replace(/\}$/, `,${member}}`));

const changed = fc
  .tuple(
    fc.dictionary(fc.constantFrom(...names), fc.oneof(value, fc.constant(undefined)), {
      maxKeys: 3,
    }),
    fc.constantFrom(...changes),
  )
  .map(([fields, change]) => change(recordOf(fields).replace(",}", "}")));

test("the reader agrees with JSON.parse on records that are changed at random", () => {
  let taken = 0;
  fc.assert(
    fc.property(fc.array(changed, { minLength: 1, maxLength: 12 }), (lines) => {
      taken += agreed(lines).filter(Boolean).length;
    }),
    { numRuns: 1_000 },
  );
  expect(taken).toBeGreaterThan(300);
});

test("the reader pauses after a fixed number of lines", () => {
  const lines = `${recordOf()}\n`.repeat(3 * linesToPause);
  for (const text of [lines, `{\n${lines}`]) {
    const ignored = { record: () => {}, unreadable: () => {} };
    expect([...reader.read(Buffer.from(text), ignored)].length).toBe(3);
  }
});
