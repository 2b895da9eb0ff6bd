import fc from "fast-check";
import { expect, test } from "vitest";
import { Found, MemberLevel, MemberNames } from "../../src/records/found-members.ts";
import { isPlain } from "../../src/records/item-view.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import { Header, Row, ScanStatus } from "../../src/records/table.ts";
import { eventLikeJson } from "../kit/event-like-json.ts";
import { findMembersInTree } from "../kit/reference-scanner/members.ts";

const scanner = createNativeScanner(64);
const names = [
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
].map((name) => ({ level: MemberLevel.Properties, name }));
const inner = [MemberLevel.Set, MemberLevel.SetOnce, 3].flatMap((level) =>
  ["a", "", "é", "email", "$set", "/"].map((name) => ({ level, name })),
);
const innerLevels = new Map([
  ["$set", MemberLevel.Set],
  ["$set_once", MemberLevel.SetOnce],
  ["$groups", 3],
  ["a", 3],
]);

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
}
const listed = fc.record({ listsAll: fc.boolean(), listsContainers: fc.boolean() });
const onlyNamed: Listed = { listsAll: false, listsContainers: false };

/** Returns the entries of both implementations for the plain items of a body. */
function found(text: string, lists: Listed): number[][] {
  const body = Buffer.from(text);
  if (scanner.scan(body) !== ScanStatus.Ok) return [];
  const { table } = scanner;
  const rows = Array.from({ length: table[Header.RowCount]! }, (_, row) => row).filter((row) =>
    isPlain({ table, row: Header.Words + row * Row.Words }),
  );
  const of = new MemberNames([...names, ...inner], { innerLevels, ...lists });
  const flags = [lists.listsAll, true, lists.listsContainers].map(Number);
  const place = Uint32Array.of(rows.length, ...flags, ...rows);
  const inTree = (...given: Parameters<typeof scanner.findMembers>) =>
    findMembersInTree(table, ...given);
  return [scanner.findMembers, inTree].map((find) => {
    const entries = new Uint32Array(1_000 * Found.Words);
    const count = find(body, place, of.text, of.slots, entries);
    return [...entries.subarray(0, count * Found.Words)];
  });
}

test("the addon finds the same members as the reference", () => {
  let words = 0;
  const check = (text: string, lists: Listed): void => {
    const [native, reference] = found(text, lists);
    expect(native).toEqual(reference);
    words += native?.length ?? 0;
  };
  fc.assert(fc.property(eventLikeJson, listed, check), { numRuns: 1_000 });
  const texts = fc
    .tuple(
      fc.array(fc.record({ properties: members, $set: members, $set_once: members }), {
        maxLength: 6,
      }),
      fc.nat(2),
    )
    .map(([batch, indent]) => JSON.stringify({ batch }, null, indent));
  fc.assert(fc.property(texts, listed, check), { numRuns: 1_000 });
  expect(words).toBeGreaterThan(10_000);
}, 60_000);

test("the addon finds members after strings of every length, with every kind of escape", () => {
  for (const sequence of ["", '\\"', "\\\\", "\\n", '\\\\\\"', "{", "}", ","])
    for (let length = 0; length < 40; length++) {
      const text = `{"event":"e","properties":{"t":"${"y".repeat(length)}${sequence}","email" : [1,{"a":"]"}] ,"x":-1e5}}`;
      const [native, reference] = found(text, onlyNamed);
      expect(native).toEqual(reference);
      expect(native).toHaveLength(2 * Found.Words);
    }
});

test("the addon returns the number of all members if there is no space for them", () => {
  const body = Buffer.from('{"event":"e","properties":{"a":1,"email":2,"x":3}}');
  scanner.scan(body);
  const of = new MemberNames(names, { innerLevels: new Map(), ...onlyNamed });
  const entries = new Uint32Array(2 * Found.Words);
  const place = Uint32Array.of(1, 0, 0, 0, 0);
  expect(scanner.findMembers(body, place, of.text, of.slots, entries)).toBe(3);
  expect(entries[Found.Words + Found.ValueStart]).toBe(body.indexOf("2,"));
});

test.each([
  ["a missing list", (good: unknown[]) => good.slice(0, 4)],
  ["a body that is a string", (good: unknown[]) => ["text", ...good.slice(1)]],
  ["more rows than there are", (good: unknown[]) => good.with(1, Uint32Array.of(2, 0, 0, 0, 0))],
  ["slots that are not a power of two", (good: unknown[]) => good.with(3, new Uint32Array(18))],
  ["a body of another length", (good: unknown[]) => good.with(0, Buffer.from("{}"))],
  ["a changed body", (good: unknown[]) => good.with(0, Buffer.alloc(30, 0x20))],
])("the addon throws for %s", (_, changed) => {
  const body = Buffer.from('{"event":"e","properties":{}}'.padEnd(30));
  scanner.scan(body);
  const of = new MemberNames(names, { innerLevels, ...onlyNamed });
  const good = [body, Uint32Array.of(1, 0, 0, 0, 0), of.text, of.slots];
  const call = scanner.findMembers as (...given: unknown[]) => number;
  expect(() => call(...changed([...good, new Uint32Array(80)]))).toThrow(Error);
});

test("the addon finds members in the rows of a body that is scanned in parts", () => {
  const few = createNativeScanner(2);
  const items = Array.from({ length: 7 }, (_, n) => `{"event":"e","properties":{"x":${n}}}`);
  const body = Buffer.from(`[${items.join()}]`);
  few.scan(body);
  const of = new MemberNames(names, { innerLevels, ...onlyNamed });
  const values: string[] = [];
  for (let left = 7; left > 0; left -= 2) {
    const entries = new Uint32Array(80);
    const place = Uint32Array.of(Math.min(2, left), 0, 1, 0, 0, 1);
    const count = few.findMembers(body, place, of.text, of.slots, entries);
    for (let at = 0; at < count * Found.Words; at += Found.Words)
      values.push(
        body.toString("latin1", entries[at + Found.ValueStart], entries[at + Found.ValueEnd]),
      );
    few.scanMore(body);
  }
  expect(values).toEqual(["0", "1", "2", "3", "4", "5", "6"]);
  few.finish();
  few.release();
  const place = Uint32Array.of(1, 0, 1, 0, 0);
  expect(() => few.findMembers(body, place, of.text, of.slots, new Uint32Array(80))).toThrow(Error);
});
