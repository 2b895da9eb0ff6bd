import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ConstantText,
  Found,
  MemberLevel,
  type MemberName,
  MemberNames,
  NameSlot,
  Names,
  type PathEdit,
  SetMember,
} from "../../src/records/found-members.ts";
import { Change, Edit } from "../../src/records/item-changes.ts";
import { isPlain } from "../../src/records/item-view.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import { createRowTasks, RowTask, RowTasks, TaskKind } from "../../src/records/row-tasks.ts";
import { Header, Row, ScanStatus } from "../../src/records/table.ts";
import { eventLikeJson } from "../kit/event-like-json.ts";
import { findMembersInTree } from "../kit/reference-scanner/members.ts";

const scanner = createNativeScanner(64);
let texts = Buffer.alloc(0);

/** Adds a text to those of the rules. */
function textOf(text: string): ConstantText {
  const start = texts.length;
  texts = Buffer.concat([texts, Buffer.from(text)]);
  return { start, end: texts.length };
}

function namesAt(level: number, all: readonly string[]): MemberName[] {
  return all.map((name) => ({ level, name, text: textOf(`${JSON.stringify(name)}:`) }));
}

const names = namesAt(MemberLevel.Properties, [
  "$set",
  "$set_once",
  "a",
  "",
  "distinct_id",
  "token",
  "$groups",
  "é",
  "x",
  "email",
]);
const inner = [MemberLevel.Set, MemberLevel.SetOnce].flatMap((level) =>
  namesAt(level, ["a", "", "é", "email", "$set", "/"]),
);

// Shallow values are enough, because no names are searched below the second level.
const value = fc.jsonValue({ maxDepth: 1 });
const members = fc.oneof(
  fc.dictionary(
    fc.constantFrom(...names.map(({ name }) => name), ...inner.map(({ name }) => name), "other"),
    fc.oneof(
      value,
      fc.dictionary(fc.constantFrom(...inner.map(({ name }) => name), "z"), value, { maxKeys: 8 }),
    ),
    { maxKeys: 8 },
  ),
  value,
);

interface Listed {
  readonly listsAll: boolean;
  readonly listsContainers: boolean;
  /** The tasks of the rows, in turn. The fuzzer tests the rows to edit. */
  readonly kinds: readonly TaskKind[];
}
const { Edit: _, Edited: __, ...kindsOfLists } = TaskKind;
const listed = fc.record({
  listsAll: fc.boolean(),
  listsContainers: fc.boolean(),
  kinds: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(TaskKind.List) },
      fc.constantFrom(...Object.values(kindsOfLists)),
    ),
    { minLength: 1, maxLength: 3 },
  ),
});
const onlyNamed: Listed = {
  listsAll: false,
  listsContainers: false,
  kinds: [TaskKind.List],
};

/** Returns the tasks of rows from 0 on. */
function tasksOf(kinds: readonly TaskKind[], rules = 0): Uint32Array {
  const tasks = createRowTasks(kinds.length);
  tasks[RowTasks.Count] = kinds.length;
  tasks[RowTasks.ChangesEnd] = 1;
  for (const [index, kind] of kinds.entries())
    tasks.set([7, kind, kind === TaskKind.Edit ? rules : 0], RowTasks.Rows + index * RowTask.Words);
  return tasks;
}

/** Returns the results of both implementations for the plain items of a body. */
function found(
  text: string,
  { kinds, ...lists }: Listed,
): { readonly entries: readonly number[]; readonly tasks: readonly number[] }[] {
  const body = Buffer.from(text);
  if (scanner.scan(body) !== ScanStatus.Ok) return [];
  const { table } = scanner;
  const kindsOfRows = Array.from({ length: table[Header.RowCount]! }, (_, row) =>
    isPlain({ table, row: Header.Words + row * Row.Words })
      ? kinds[row % kinds.length]!
      : TaskKind.Rewrite,
  );
  const of = new MemberNames([...names, ...inner], { texts, ...lists });
  const inTree = (...given: Parameters<typeof scanner.findMembers>) =>
    findMembersInTree(table, ...given);
  return [scanner.findMembers, inTree].map((find) => {
    const tasks = tasksOf(kindsOfRows);
    const entries = new Uint32Array(1_000 * Found.Words);
    const count = find(body, tasks, texts, of.slots, entries, noChanges);
    return { entries: [...entries.subarray(0, count * Found.Words)], tasks: [...tasks] };
  });
}

test("the addon finds the same members as the reference", () => {
  let entryWords = 0;
  const check = (text: string, lists: Listed): void => {
    const [native, reference] = found(text, lists);
    expect(native).toEqual(reference);
    entryWords += native?.entries.length ?? 0;
  };
  fc.assert(fc.property(eventLikeJson, listed, check), { numRuns: 1_000 });
  const own = fc.record({ properties: members, $set: members, $set_once: members });
  const batch = fc.array(
    own.chain((fields) =>
      fc
        .shuffledSubarray(Object.entries(fields), { minLength: 2 })
        .map((entries) => Object.fromEntries(entries)),
    ),
    { maxLength: 6 },
  );
  const texts = fc
    .tuple(batch, fc.nat(2))
    .map(([events, indent]) => JSON.stringify({ batch: events }, null, indent));
  fc.assert(fc.property(texts, listed, check), { numRuns: 1_000 });
  expect(entryWords).toBeGreaterThan(2_000);
}, 60_000);

test("the addon finds members after strings of every length, with every kind of escape", () => {
  for (const sequence of ["", '\\"', "\\\\", "\\n", '\\\\\\"', "{", "}", ","])
    for (let length = 0; length < 40; length++) {
      const text = `{"event":"e","properties":{"t":"${"y".repeat(length)}${sequence}","email" : [1,{"a":"]"}] ,"x":-1e5}}`;
      const [native, reference] = found(text, onlyNamed);
      expect(native).toEqual(reference);
      expect(native?.entries).toHaveLength(2 * Found.Words);
    }
});

test("the addon returns the number of all members if there is no space for them", () => {
  const body = Buffer.from('{"event":"e","properties":{"a":1,"email":2,"x":3}}');
  scanner.scan(body);
  const of = new MemberNames(names, { texts, ...onlyNamed });
  const entries = new Uint32Array(2 * Found.Words);
  const count = scanner.findMembers(
    body,
    tasksOf([TaskKind.List]),
    texts,
    of.slots,
    entries,
    noChanges,
  );
  expect(count).toBe(3);
  expect(entries[Found.Words + Found.ValueStart]).toBe(body.indexOf("2,"));
});

const everyRemoved = new Map(
  names.map((_, at): [number, PathEdit] => [at + 1, { rules: 1, edit: "remove" }]),
);

test("the addon returns the end of all changes if there is no space for them", () => {
  const body = Buffer.from('{"event":"e","properties":{"a":1,"email":2,"x":3}}');
  scanner.scan(body);
  const of = new MemberNames(names, { texts, ...onlyNamed, edits: everyRemoved });
  const tasks = tasksOf([TaskKind.Edit], 1);
  const changes = new Uint32Array(1 + Change.Words + 2 * Edit.Words);
  const count = scanner.findMembers(body, tasks, texts, of.slots, new Uint32Array(80), changes);
  expect(count).toBe(0);
  expect(tasks[RowTasks.ChangesEnd]).toBe(changes.length + Edit.Words);
});

function slotsWith(count: number, sets = 0): Uint32Array {
  const words = Names.Words + 4 * NameSlot.Words + sets * SetMember.Words;
  return new Uint32Array(words).with(Names.Slots, count).with(Names.Sets, sets);
}

const noChanges = new Uint32Array(0);

test.each([
  ["a missing list", (good: unknown[]) => good.slice(0, 5)],
  ["a body that is a string", (good: unknown[]) => ["text", ...good.slice(1)]],
  ["no words of tasks", (good: unknown[]) => good.with(1, new Uint32Array(RowTasks.Rows - 1))],
  [
    "more tasks than there are",
    (good: unknown[]) => good.with(1, tasksOf([TaskKind.List]).with(RowTasks.Count, 2)),
  ],
  [
    "rows after the table",
    (good: unknown[]) => good.with(1, tasksOf([TaskKind.List]).with(RowTasks.First, 64)),
  ],
  ["slots that are not a power of two", (good: unknown[]) => good.with(3, slotsWith(3))],
  ["more slots than there are", (good: unknown[]) => good.with(3, slotsWith(8))],
  ["too many members to set", (good: unknown[]) => good.with(3, slotsWith(1, 33))],
  [
    "more members to set than there are",
    (good: unknown[]) => good.with(3, slotsWith(4).with(Names.Sets, 1)),
  ],
  ["slots that are missing", (good: unknown[]) => good.with(3, new Uint32Array(2))],
  ["a body of another length", (good: unknown[]) => good.with(0, Buffer.from("{}"))],
  ["a changed body", (good: unknown[]) => good.with(0, Buffer.alloc(30, 0x20))],
])("the addon throws for %s", (_, changed) => {
  const body = Buffer.from('{"event":"e","properties":{}}'.padEnd(30));
  scanner.scan(body);
  const of = new MemberNames(names, { texts, ...onlyNamed });
  const good = [body, tasksOf([TaskKind.List]), texts, of.slots];
  const call = scanner.findMembers as (...given: unknown[]) => number;
  expect(() => call(...changed([...good, new Uint32Array(80), noChanges]))).toThrow(Error);
});

test("the addon finds members in the rows of a body that is scanned in parts", () => {
  const few = createNativeScanner(2);
  const items = Array.from({ length: 7 }, (_, n) => `{"event":"e","properties":{"x":${n}}}`);
  const body = Buffer.from(`[${items.join()}]`);
  few.scan(body);
  const of = new MemberNames(names, { texts, ...onlyNamed });
  const values: string[] = [];
  for (let left = 7; left > 0; left -= 2) {
    const entries = new Uint32Array(80);
    const tasks = tasksOf([TaskKind.List, TaskKind.List].slice(0, left));
    const count = few.findMembers(body, tasks, texts, of.slots, entries, noChanges);
    for (let at = 0; at < count * Found.Words; at += Found.Words)
      values.push(
        body.toString("latin1", entries[at + Found.ValueStart], entries[at + Found.ValueEnd]),
      );
    few.scanMore(body);
  }
  expect(values).toEqual(["0", "1", "2", "3", "4", "5", "6"]);
  few.finish();
  few.release();
  const tasks = tasksOf([TaskKind.List]);
  const given = [body, tasks, texts, of.slots, new Uint32Array(80), noChanges] as const;
  expect(() => few.findMembers(...given)).toThrow(Error);
});
