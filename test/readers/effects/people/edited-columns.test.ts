// Properties that somebody changed in the database: taken as they are there, told once.

import { expect, test } from "vitest";
import { fromEdited } from "../../../../src/readers/effects/people/edited-columns.ts";
import { LargeProperties } from "../../../../src/readers/effects/people/large-properties.ts";
import { People } from "../../../../src/readers/effects/people/people.ts";
import { PropertyBag, Refused } from "../../../../src/readers/effects/people/property-bag.ts";
import { toColumns } from "../../../../src/readers/effects/people/property-columns.ts";
import { applyAll, Rows, valuesOf } from "./rows.ts";

const columns = toColumns(
  new Map([
    ["a", { write: { stamp: { timeMs: 5, rank: "b" }, json: "1" }, once: undefined }],
    [
      "plan",
      {
        write: { stamp: { timeMs: 7, rank: "a" }, json: '"pro"' },
        once: { stamp: { timeMs: 2, rank: "c" }, json: '"secret"' },
      },
    ],
    ["gone", { write: { stamp: { timeMs: 6, rank: "d" }, json: null }, once: undefined }],
  ]),
);

function shown(json: string, state = columns.state): Record<string, string | null | undefined> {
  const found = fromEdited({ json, state });
  return Object.fromEntries([...found].map(([name, { write }]) => [name, write?.json]));
}

test("each value is as it is written, as of the newest event that is known", () => {
  const json =
    ' { "a" : 12345678901234567890.10 , "q\\"{,:":"}\\\\" ,"o": {"x":[1,{"y":","}]},"":[] } ';
  expect(shown(json)).toEqual({
    a: "12345678901234567890.10",
    'q"{,:': '"}\\\\"',
    o: '{"x":[1,{"y":","}]}',
    "": "[]",
  });
  const stamp = { timeMs: 7, rank: "a" };
  expect(fromEdited({ ...columns, json }).get("a")).toEqual({
    write: { stamp, json: "12345678901234567890.10" },
    once: undefined,
  });
});

test("what is no object has no properties, and a state that is none no time", () => {
  for (const json of ["", "{", "[1]", "null", "{}", " { } "]) expect(shown(json)).toEqual({});
  for (const state of ["", "[", "5", "[5]", '[["a"]]'])
    expect(fromEdited({ json: '{"a":1}', state }).get("a")?.write?.stamp.timeMs).toBe(0);
});

test("a bag goes on from there: told once, counted anew, and nothing hidden is left", () => {
  const bag = new PropertyBag({ ...columns, json: '{"plan":"free!"}' }, 999);
  const refused = new Refused();
  const large = new LargeProperties(1e6);
  const room = { projectId: "demo", large, bytesMax: 1e6, countMax: 1e3, refused };
  const older = { timeMs: 6, rank: "x" };
  const writes = { once: [], set: [["plan", '"late"'] as const], unset: [] };
  // It is to be written although the event changes nothing.
  expect(bag.write(writes, older, room)).toBe(true);
  expect(refused.wasEdited).toBe(true);
  expect(bag.bytes).toBe(160 + 4 + 7);
  const { json, state } = bag.columns();
  expect(json).toBe('{"plan":"free!"}');
  expect(state).not.toContain("secret");
  const again = { ...room, refused: new Refused() };
  expect(new PropertyBag({ json, state }, bag.bytes).write(writes, older, again)).toBe(false);
  expect(bag.write(writes, older, again)).toBe(false);
  expect(again.refused.wasEdited).toBe(false);
  expect(bag.write(writes, { timeMs: 8, rank: "y" }, again)).toBe(true);
  expect(bag.columns().json).toBe('{"plan":"late"}');
});

test("rows that were changed stop nobody: those of a person, of two that are merged, of a group", () => {
  const rows = new Rows();
  const writes = (n: string) => ({ once: [], set: [["n", n] as const], unset: [] });
  const group = (n: string) => ({ type: "company", key: "acme", set: writes(n) });
  const ids = ["victim", "one", "two"];
  applyAll(
    new People(),
    rows,
    ids.map((distinctId, line) => {
      const step = { timeMs: 1, distinctId, place: { sequence: 1, line } };
      return { ...step, person: writes("1"), group: group("1") };
    }),
  );
  const json = '{"free":true}';
  for (const id of ids) {
    const member = rows.members.get(id)!;
    const person = member.person!;
    const properties = { ...person.properties, json };
    rows.members.set(id, { ...member, person: { ...person, properties } });
  }
  for (const [key, row] of rows.groups)
    rows.groups.set(key, { ...row, properties: { ...row.properties, json } });
  const people = new People();
  const link = { kind: "alias", from: "one", to: "two" } as const;
  const { rejected } = applyAll(people, rows, [
    { timeMs: 2, place: { sequence: 2 }, distinctId: "victim", person: writes("2") },
    { timeMs: 2, place: { sequence: 3 }, distinctId: "one", link },
    { timeMs: 2, place: { sequence: 4 }, group: group("2") },
    { timeMs: 2, place: { sequence: 5 }, distinctId: "other", person: writes("2") },
  ]);
  const told = rejected.map(({ reason, place }) => [reason, place.sequence]);
  expect(told).toEqual([2, 3, 4].map((sequence) => ["properties_edited", sequence]));
  const details = ["the person", "the persons merged", "the group"];
  for (const [at, whose] of [": victim", ": one or two", ": company/acme"].entries()) {
    expect(rejected[at]?.detail).toContain(`properties of ${details[at]} were changed`);
    expect(rejected[at]?.detail).toContain(whose);
  }
  expect(valuesOf(rows.personOf("victim")?.person)).toEqual({ free: "true", n: "2" });
  expect(valuesOf(rows.personOf("one")?.person)).toEqual({ free: "true" });
  expect(valuesOf(rows.personOf("other")?.person)).toEqual({ n: "2" });
  expect(valuesOf([...rows.groups.values()][0])).toEqual({ free: "true", n: "2" });
});
