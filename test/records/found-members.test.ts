import fc from "fast-check";
import { expect, test } from "vitest";
import { Found, MemberLevel, MemberNames } from "../../src/records/found-members.ts";
import { isPlain } from "../../src/records/item-view.ts";
import { createNativeScanner, loadAddon } from "../../src/records/native.ts";
import { Header, Row, ScanStatus } from "../../src/records/table.ts";
import { eventLikeJson } from "../kit/event-like-json.ts";
import { findMembersInTree } from "../kit/reference-scanner/members.ts";

const scanner = createNativeScanner(64);
const { findMembers } = loadAddon();
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

const members = fc.oneof(
  fc.dictionary(
    fc.constantFrom(...names.map(({ name }) => name), ...inner.map(({ name }) => name), "other"),
    fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.dictionary(fc.constantFrom(...inner.map(({ name }) => name), "z"), fc.jsonValue()),
    ),
  ),
  fc.jsonValue({ maxDepth: 1 }),
);

/** Returns the entries of both implementations for the plain items of a body. */
function found(text: string, listsAll: boolean): number[][] {
  const body = Buffer.from(text);
  if (scanner.scan(body) !== ScanStatus.Ok) return [];
  const { table } = scanner;
  const rows = Array.from({ length: table[Header.RowCount]! }, (_, row) => row).filter((row) =>
    isPlain({ table, row: Header.Words + row * Row.Words }),
  );
  const of = new MemberNames([...names, ...inner], { innerLevels, listsAll });
  const place = Uint32Array.of(rows.length, listsAll ? 1 : 0, 1, ...rows);
  return [findMembers, findMembersInTree].map((find) => {
    const entries = new Uint32Array(1_000 * Found.Words);
    const count = find(body, table, place, of.text, of.slots, entries);
    return [...entries.subarray(0, count * Found.Words)];
  });
}

test("the addon finds the same members as the reference", () => {
  let words = 0;
  const check = (text: string, listsAll: boolean): void => {
    const [native, reference] = found(text, listsAll);
    expect(native).toEqual(reference);
    words += native?.length ?? 0;
  };
  fc.assert(fc.property(eventLikeJson, fc.boolean(), check), { numRuns: 1_000 });
  const texts = fc
    .tuple(
      fc.array(fc.record({ properties: members, $set: members, $set_once: members })),
      fc.nat(2),
    )
    .map(([batch, indent]) => JSON.stringify({ batch }, null, indent));
  fc.assert(fc.property(texts, fc.boolean(), check), { numRuns: 1_000 });
  expect(words).toBeGreaterThan(10_000);
}, 60_000);

test("the addon finds members after strings of every length, with every kind of escape", () => {
  for (const sequence of ["", '\\"', "\\\\", "\\n", '\\\\\\"', "{", "}", ","])
    for (let length = 0; length < 40; length++) {
      const text = `{"event":"e","properties":{"t":"${"y".repeat(length)}${sequence}","email" : [1,{"a":"]"}] ,"x":-1e5}}`;
      const [native, reference] = found(text, false);
      expect(native).toEqual(reference);
      expect(native).toHaveLength(3 * Found.Words);
    }
});

test("the addon returns the number of all members if there is no space for them", () => {
  const body = Buffer.from('{"event":"e","properties":{"a":1,"email":2,"x":3}}');
  scanner.scan(body);
  const of = new MemberNames(names, { innerLevels: new Map(), listsAll: false });
  const entries = new Uint32Array(2 * Found.Words);
  const place = Uint32Array.of(1, 0, 0, 0);
  expect(findMembers(body, scanner.table, place, of.text, of.slots, entries)).toBe(4);
  expect(entries[Found.Words + Found.ValueStart]).toBe(body.indexOf("2,"));
});

test.each([
  ["a missing list", (good: unknown[]) => good.slice(0, 5)],
  ["a body that is a string", (good: unknown[]) => ["text", ...good.slice(1)]],
  ["more rows than there are", (good: unknown[]) => good.with(2, Uint32Array.of(2, 0, 0, 0))],
  ["slots that are not a power of two", (good: unknown[]) => good.with(4, new Uint32Array(18))],
  ["a table without a row", (good: unknown[]) => good.with(1, new Uint32Array(1))],
])("the addon throws for %s", (_, changed) => {
  const body = Buffer.from('{"event":"e"}');
  scanner.scan(body);
  const of = new MemberNames(names, { innerLevels, listsAll: false });
  const good = [body, scanner.table, Uint32Array.of(1, 0, 0, 0), of.text, of.slots];
  const call = findMembers as (...given: unknown[]) => number;
  expect(() => call(...changed([...good, new Uint32Array(80)]))).toThrow(TypeError);
});
