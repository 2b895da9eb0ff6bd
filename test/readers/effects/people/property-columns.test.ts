import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import {
  fromColumns,
  shownJson,
  toColumns,
} from "../../../../src/readers/effects/people/property-columns.ts";
import { compareStamps, rankOf } from "../../../../src/readers/effects/stamp.ts";
import type { LinePlace, PropertyState } from "../../../../src/readers/effects/types.ts";

const places: fc.Arbitrary<LinePlace> = fc.record({
  lane: fc.constantFrom("live", "historical"),
  epoch: fc.integer({ min: 1, max: 40 }),
  partition: fc.integer({ min: 0, max: 63 }),
  sequence: fc.maxSafeNat(),
  line: fc.nat(1_000_000),
});
const stamps = fc
  .record({ timeMs: fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }), places })
  .map(({ timeMs, places: place }) => ({ timeMs, rank: rankOf(place) }));
const texts = fc.oneof(
  fc.json(),
  fc.constantFrom("12345678901234567890.10", "1e400", '"é\\u00e9\\""', "{}", "[null]"),
);
const properties: fc.Arbitrary<PropertyState> = fc
  .record({
    write: fc.option(fc.record({ stamp: stamps, json: fc.option(texts, { nil: null }) }), {
      nil: undefined,
    }),
    once: fc.option(fc.record({ stamp: stamps, json: texts }), { nil: undefined }),
  })
  .filter(({ write, once }) => write !== undefined || once !== undefined);
const names = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("__proto__", "constructor", "", '"', "\\", "\n", "plan"),
);

test("stamps sort by time, then by stream position", () => {
  const order = (place: LinePlace) => [
    place.lane === "live" ? 1 : 0,
    place.epoch,
    place.partition,
    place.sequence,
    place.line,
  ];
  fc.assert(
    fc.property(places, places, (a, b) => {
      const [first, second] = [order(a), order(b)];
      const differs = first.findIndex((value, index) => value !== second[index]);
      const expected = differs < 0 ? 0 : Math.sign(first[differs]! - second[differs]!);
      const [left, right] = [rankOf(a), rankOf(b)];
      const [older, newer] = [
        { timeMs: 1, rank: left },
        { timeMs: 1, rank: right },
      ];
      expect(compareStamps(older, newer)).toBe(expected);
      expect(compareStamps({ timeMs: 2, rank: left }, newer)).toBeGreaterThan(0);
    }),
  );
});

describe("the two columns of a row's properties", () => {
  test("are read back unchanged, including all digits", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(names, properties)), (entries) => {
        const before = new Map(entries);
        const columns = toColumns(before);
        const after = fromColumns(columns);
        expect(after).toEqual(before);
        expect(toColumns(after!)).toEqual(columns);
      }),
    );
  });

  test("show the values sorted by name", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(names, properties)), (entries) => {
        const shown = [...new Map(entries)]
          .map(([name, property]) => [name, shownJson(property)] as const)
          .filter(([, json]) => json !== undefined)
          .sort(([a], [b]) => (a < b ? -1 : 1));
        const fields = shown.map(([name, json]) => `${JSON.stringify(name)}:${json}`);
        expect(toColumns(new Map(entries)).json).toBe(`{${fields.join(",")}}`);
      }),
    );
  });

  test("are rejected if they do not match", () => {
    const stamp = { timeMs: 1, rank: "r" };
    const columns = toColumns(new Map([["a", { write: { stamp, json: "1" }, once: undefined }]]));
    for (const json of ['{"a": 1}', "{}", '{"ab":1', "x", '{"ab":}'])
      expect(fromColumns({ ...columns, json })).toBeUndefined();
    for (const state of ["", "[", "[[],[],[],[]]", "{}"])
      expect(fromColumns({ ...columns, state })).toBeUndefined();
  });
});

test("the uuid of a person is a version 5 UUID", () => {
  // Result of Python: uuid5(UUID("70656e73-746f-636b-2d70-6572736f6e73"), "demo
  // user-1")
  expect(personUuid("demo", "user-1")).toBe("deb03350-5b38-5b44-828b-fae7647706ec");
  expect(personUuid("demo", "Zoë 🦊")).toBe("7307d303-0617-5f47-a1ae-ff06eb6e19c0");
});

test.each([
  ["{}", '[[],[],[],["plan",0,-1,""]]'],
  ["{}", '[[],[],[],["plan",-1,-1,""]]'],
  ['{"plan":"pro"}', "[[],[6,5,0,-1],[],[]]"],
  ['{"plan":"pro"}', "[[],[6,5,-1,-1],[],[]]"],
  ['{"plan":"pro"}', '[[1,"r"],[6,5,7,-1],[],[]]'],
])("property columns with a missing stamp are rejected: %s %s", (json, state) => {
  expect(fromColumns({ json, state })).toBeUndefined();
});
