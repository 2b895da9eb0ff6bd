// The quick way of reading a line, by its row in a scan table, agrees with the slow one, member by
// member, wherever it takes the line at all: and it takes the lines that the gateway writes.

import { randomFillSync } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { EventHash } from "../../../../src/readers/effects/lines/event-hash.ts";
import { MemberFacts } from "../../../../src/readers/effects/lines/member-facts.ts";
import { viewed } from "../../../../src/readers/effects/lines/viewed-bytes.ts";
import { WrittenLines } from "../../../../src/readers/effects/lines/written-lines.ts";
import { isPlainEvent } from "../../../../src/readers/effects/rules/effect-of.ts";
import { EventFacts, Span } from "../../../../src/readers/effects/rules/event-facts.ts";
import { Line } from "../../../../src/records/lines.ts";
import { createNativeScanner } from "../../../../src/records/native.ts";
import { Header, Row, ScanStatus, TokenType } from "../../../../src/records/table.ts";
import { kinds } from "../../../../src/records/verdict.ts";
import { recordOf } from "../../../kit/effect-lines.ts";
import { eventLikeJson } from "../../../kit/event-like-json.ts";
import { take } from "../../../kit/items.ts";
import { idHashOf } from "../line-kit.ts";

const scanner = createNativeScanner(1_024);
const uuidKey = randomFillSync(new Uint32Array(2));
const written = new WrittenLines({ ...viewed(Buffer.alloc(0)), table: scanner.table }, uuidKey);
const eventHash = new EventHash(uuidKey);
const memberFacts = new MemberFacts();
const storedAtMs = Date.UTC(2026, 11, 31);

const opening = '{"batch":[';

/** Whether the quick way takes the line; holds what it says against what the slow way says. */
function takes(line: string): boolean {
  return takesOf([line])[0]!;
}

/** The same of several lines, each an item of one batch. */
function takesOf(lines: readonly string[]): readonly boolean[] {
  const none = lines.map(() => false);
  const text = { ...viewed(Buffer.from(`${opening}${lines.join(",")}]}`)), table: scanner.table };
  if (scanner.scan(text.body) !== ScanStatus.Ok) return none;
  if (scanner.table[Header.RowCount] !== lines.length) return none;
  const ends = new Uint32Array(lines.length);
  let end = opening.length - 1;
  for (const [index, line] of lines.entries()) {
    end += 1 + Buffer.byteLength(line);
    ends[index] = end;
  }
  const place = { ends, lines: lines.length, line: 0, start: opening.length };
  expect(written.read(text, place)).toBe(lines.length);
  return lines.map((_, index) => takesRow(text, index));
}

function takesRow(text: Parameters<WrittenLines["read"]>[0], index: number): boolean {
  const quick = new EventFacts();
  if (!written.isWritten(index) || !written.fill(quick, index, storedAtMs)) return false;
  // What else it says is not asked for where it is known to say nothing.
  const isPlain = isPlainEvent(quick, false);
  written.fillRest(quick, index);
  const row = Header.Words + index * Row.Words;
  const span = {
    start: scanner.table[row + Row.ItemStart]!,
    end: scanner.table[row + Row.ItemEnd]!,
    type: TokenType.Object,
  };
  const slow = new EventFacts();
  expect(memberFacts.fill(slow, { body: text.body, ...span }, storedAtMs)).toBeUndefined();
  expect(said(quick)).toEqual(said(slow));
  if (!written.hasWrites(index)) expect(isPlain).toBe(isPlainEvent(slow, true));
  expectHashes(slow, index);
  return true;
}

/** The addon's hashes are those that are made here. */
function expectHashes(facts: EventFacts, index: number): void {
  const { distinctId } = facts;
  eventHash.set(facts);
  expect(written.hashWord(index, Line.UuidHigh)).toBe(eventHash.high);
  expect(written.hashWord(index, Line.UuidLow)).toBe(eventHash.low);
  if (!written.hasPlainId(index)) return;
  const { idHashHigh, idHashLow } = idHashOf(distinctId);
  expect(written.hashWord(index, Line.IdHigh)).toBe(idHashHigh);
  expect(written.hashWord(index, Line.IdLow)).toBe(idHashLow);
}

function said({
  body,
  uuidBody,
  uuidView,
  uuidAt,
  event: _,
  id: __,
  ...facts
}: EventFacts): object {
  const values = Object.entries(facts).map(([name, value]) => [
    name,
    value instanceof Span ? spanText(body, value) : (value as unknown),
  ]);
  const uuid = uuidBody.toString("latin1", uuidAt, uuidAt + 36);
  return { ...(Object.fromEntries(values) as object), uuid, first: uuidView.getUint8(uuidAt) };
}

function spanText(body: Buffer, { start, end, type }: Span): string {
  return type === TokenType.Absent ? "absent" : `${type} ${body.toString("utf8", start, end)}`;
}

test("it takes what the gateway writes, of whatever is sent, and agrees", () => {
  fc.assert(
    fc.property(eventLikeJson, (body) => {
      const lines = linesOf(body).map((line) => line.trimEnd());
      // Where a name has an escape, the table does not know which name it is.
      for (const [index, isTaken] of takesOf(lines).entries())
        expect(isTaken || lines[index]!.includes("\\")).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test("it takes a record with replaced values, and no member after them", () => {
  const event = { event: "e", distinct_id: "u", timestamp: "soon", uuid: '}"],{' };
  const [line] = take({ batch: [{ ...event, $set: { a: 1 } }] }).lines.map((text) =>
    text.trimEnd(),
  );
  const more = line!.slice(0, -1);
  expect(takesOf([line!, `${more},"kind":"set"}`, `${more},"replaced":{}}`])).toEqual([
    ...[true, false, false],
  ]);
});

function linesOf(body: string): readonly string[] {
  try {
    return take(body).lines;
  } catch {
    return [];
  }
}

const value = fc.constantFrom(
  ...[null, true, false, 0, 1e20, "", " ", "x", "é", "\0", "\ud800", "a\nb", "{}", "𝄞".repeat(150)],
  ...[
    [],
    [1],
    {},
    { a: 1 },
    { $set: { a: 1 } },
    { $groups: { t: "k" }, $set_once: {}, $unset: [] },
  ],
  ...["$identify", "$merge_dangerously", "$exception", "identify", "group_identify", "survey"],
  ...[
    "2026-01-02T03:04:05.678Z",
    "0000-01-01T00:00:00.000Z",
    "2026-01-02",
    "9999-12-31T23:59:60.000Z",
  ],
  ...["0190C8B2-7f3a-7c11-9d2e-3f4a5b6c7d8e", "$posthog_cookieless"],
);
const names = [
  ...["uuid", "project_id", "event", "distinct_id", "timestamp", "timestamp_sent", "received_at"],
  ...["sent_at", "ip", "kind", "person_profile", "historical", "properties"],
  ...["$set", "$set_once", "$unset"],
];
const changed = fc
  .tuple(
    fc.dictionary(fc.constantFrom(...names), fc.oneof(value, fc.constant(undefined)), {
      maxKeys: 3,
    }),
    fc.constantFrom<(line: string) => string>(
      ...[
        (line: string) => line,
        (line: string) => line.replace(",", ", "),
        (line: string) => line.replace('"kind"', '"\\u006bind"'),
        (line: string) => line.replace('"e"', '"\\u0024exception"'),
        (line: string) => line.replace("{", '{"uuid":"x",'),
        (line: string) => line.replace(/\}$/, ',"kind":"alias"}'),
        (line: string) => line.replace(/\}$/, ',"properties":{"$groups":{}}}'),
        (line: string) => line.replace(/\}$/, ',"project_id":"q"}'),
        (line: string) => line.replace('"properties":{', '"properties":{"\\u0024set":{"a":1},'),
        (line: string) => line.replace('"properties":{', '"properties":{"$set":1,"$set":{"a":2},'),
      ],
    ),
  )
  .map(([fields, change]) => change(recordOf(fields).replace(",}", "}")));

test("it agrees on records that are changed in any way", () => {
  let taken = 0;
  fc.assert(
    fc.property(changed, (line) => {
      if (takes(line)) taken++;
    }),
    { numRuns: 1_500 },
  );
  expect(taken).toBeGreaterThan(100);
});

test("it takes every kind of event, in either lane, with a person profile or without", () => {
  for (const kind of kinds)
    for (const person_profile of [true, false])
      for (const historical of [true, false])
        expect(takes(recordOf({ kind, person_profile, historical })), kind).toBe(true);
});

test("it agrees on lines of several projects, times and kinds in one frame", () => {
  fc.assert(
    fc.property(fc.array(changed, { minLength: 2, maxLength: 12 }), (lines) => {
      takesOf(lines);
    }),
    { numRuns: 300 },
  );
  const projects = ["p", "p", "q", "p", "q", "q"].map((project_id) => recordOf({ project_id }));
  expect(takesOf(projects)).toEqual(projects.map(() => true));
});

test("it takes a line after any other", () => {
  const others = ["timestamp_sent", "sent_at"].map((name) =>
    recordOf({ received_at: undefined, ip: undefined, kind: undefined, [name]: "x" }),
  );
  for (const other of [...others, recordOf({ ip: undefined }), recordOf({ kind: "alias" })]) {
    expect(takes(recordOf())).toBe(true);
    takes(other);
  }
});
