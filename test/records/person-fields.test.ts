import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type StoredRecord, take } from "../kit/items.ts";

function stored(said: object): { record: StoredRecord; warnings: readonly string[]; line: string } {
  return storedText(JSON.stringify({ event: "e", distinct_id: "u", ...said }));
}

function storedText(body: string): {
  record: StoredRecord;
  warnings: readonly string[];
  line: string;
} {
  const { records, warnings, lines } = take(body);
  expect(records).toHaveLength(1);
  return { record: records[0]!, warnings, line: lines[0]! };
}

describe("person fields", () => {
  describe.each(["$set", "$set_once"] as const)("%s", (field) => {
    test("is stored at the top level if it is sent there", () => {
      const { record } = stored({ [field]: { a: 1 }, properties: { b: 2 } });
      expect(record[field]).toEqual({ a: 1 });
      expect(record["properties"]).toEqual({ b: 2 });
    });

    test("is copied to the top level if it is sent in properties", () => {
      const { record } = stored({ properties: { b: 2, [field]: { a: 1 } } });
      expect(record[field]).toEqual({ a: 1 });
      expect(record["properties"]).toEqual({ b: 2, [field]: { a: 1 } });
    });

    test("is merged key by key if it is sent at both levels", () => {
      const nested = { a: "nested", b: { deep: 1 }, c: null };
      const { record } = stored({
        properties: { [field]: nested },
        [field]: { a: "top", b: { other: 2 }, d: [] },
      });
      expect(record[field]).toEqual({ a: "top", b: { other: 2 }, c: null, d: [] });
      expect(record["properties"]).toEqual({ [field]: nested });
    });

    test("is merged by name in any notation", () => {
      const { record, line } = storedText(
        `{"event":"e","distinct_id":"u","${field}":{"\\u0061":1,"é":2},"properties":{"${field}":{"a":0,"\\u00e9":0,"b":0}}}`,
      );
      expect(record[field]).toEqual({ a: 1, é: 2, b: 0 });
      expect(line.endsWith(`"${field}":{"b":0,"a":1,"é":2}}`)).toBe(true);
    });

    test("keeps the digits of numbers that no double can hold", () => {
      const digits = "12345678901234567890.000000000000000000001";
      const big = `1${"0".repeat(350)}`;
      for (const nested of ["", `,"properties":{"${field}":{"c":-0.10}}`]) {
        const { line } = storedText(
          `{"event":"e","distinct_id":"u","${field}":{"a":${digits},"b":[1e400,${big}]}${nested}}`,
        );
        expect(line).toContain(`"a":${digits},"b":[1e400,${big}]`);
        if (nested !== "") expect(line).toContain(`"${field}":{"c":-0.10,"a"`);
      }
    });

    test.each([
      ["{}", "{}", "{}"],
      ["{ }", '{ "a" : 1 }', '{"a":1}'],
      ['{\t"a" : 1 }', "{ \n }", '{"a":1}'],
      ["null", '{"a":1}', '{"a":1}'],
      ['{"a":1}', "null", '{"a":1}'],
    ])("%s and %s are merged to %s", (top, nested, expected) => {
      const { record } = storedText(
        `{"event":"e","distinct_id":"u","${field}":${top},"properties":{"${field}":${nested}}}`,
      );
      expect(record[field]).toEqual(JSON.parse(expected));
    });

    test("is absent from the record if it is null or missing", () => {
      for (const said of [{}, { [field]: null }, { properties: { [field]: null } }]) {
        expect(stored(said).record).not.toHaveProperty(field);
      }
    });

    test.each([[1], ["x"], [["a"]], [true], [""]])(
      "is ignored with a warning if it is %j",
      (value) => {
        for (const said of [
          { [field]: value, properties: { a: 1 } },
          { properties: { a: 1, [field]: value } },
        ]) {
          const { record, warnings } = stored(said);
          expect(warnings).toEqual(["invalid_object"]);
          expect(record).not.toHaveProperty(field);
          expect(record["properties"]).toEqual({ a: 1 });
        }
      },
    );

    test("counts as an empty object if it is an empty array", () => {
      expect(stored({ [field]: [] }).warnings).toEqual([]);
      const { record, warnings } = stored({ [field]: { a: 1 }, properties: { [field]: [] } });
      expect(warnings).toEqual([]);
      expect(record[field]).toEqual({ a: 1 });
      expect(record["properties"]).toEqual({ [field]: {} });
    });

    test("fails only its own event if both occurrences exceed 512 KiB", () => {
      const half = { [field]: { a: "x".repeat(262_144) } };
      const good = { event: "good", distinct_id: "u" };
      const { records, errors } = take({
        batch: [good, { ...good, ...half, properties: half }, { ...good, properties: half }],
      });
      expect(errors).toEqual(["event_too_large"]);
      expect(records.map((record) => typeof record[field])).toEqual(["undefined", "object"]);
    });
  });

  describe("$unset", () => {
    test.each([
      ["an array", ["a", "b"], undefined, ["a", "b"]],
      ["an array in properties", undefined, ["a", "b"], ["a", "b"]],
      ["an object", { a: 1, b: { a: 2, c: [",", "x"] } }, undefined, ["a", "b"]],
      ["arrays at the top level and in properties", ["a", "b"], ["b", "c"], ["a", "b", "c"]],
      ["an array and an object", ["a"], { b: "", c: null }, ["a", "b", "c"]],
      ["repeated names", ["a", "b", "a"], undefined, ["b", "a"]],
      ["an empty array", [], undefined, []],
      ["empty values at the top level and in properties", {}, [], []],
      [
        "names that JSON writes with escapes",
        ['"', "\\", "é\n", ""],
        ['\\"'],
        ['"', "\\", "é\n", "", '\\"'],
      ],
      ["null with an array", null, ["a"], ["a"]],
    ])("is merged from %s", (_title, top, nested, expected) => {
      const properties = nested === undefined ? {} : { $unset: nested };
      const { record, warnings } = stored({ $unset: top, properties });
      expect(warnings).toEqual([]);
      expect([...(record["$unset"] as string[])].sort()).toEqual([...expected].sort());
      expect(record["properties"]).toEqual(properties);
    });

    test.each([null, undefined])("is absent from the record if it is %j", (value) => {
      expect(stored({ $unset: value, properties: { $unset: null } }).record).not.toHaveProperty(
        "$unset",
      );
    });

    test.each([["email"], [1], [true], [""]])("is ignored with a warning if it is %j", (value) => {
      for (const said of [{ $unset: value }, { properties: { $unset: value } }]) {
        const { record, warnings } = stored(said);
        expect(warnings).toEqual(["invalid_unset"]);
        expect(record).not.toHaveProperty("$unset");
      }
      expect(stored({ $unset: value, properties: { $unset: ["a"] } })).toMatchObject({
        record: { $unset: ["a"] },
        warnings: ["invalid_unset"],
      });
    });

    test("keeps the names of an array and ignores other values", () => {
      const { record, warnings } = stored({
        $unset: ["a", 1, ["b", { c: "d" }], null, { e: ["f"] }, "g"],
      });
      expect(warnings).toEqual(["invalid_unset"]);
      expect(record["$unset"]).toEqual(["a", "g"]);
    });

    test("fails its event if it exceeds 64 KiB", () => {
      expect(take({ event: "e", distinct_id: "u", $unset: ["x".repeat(65_536)] }).errors).toEqual([
        "event_too_large",
      ]);
    });
  });

  test('of a `$set` event are stored with the kind "set"', () => {
    const { record, warnings } = stored({
      event: "$set",
      properties: { $set: { a: 1 }, $unset: ["b"] },
      $set: { c: 2 },
    });
    expect(warnings).toEqual([]);
    expect(record).toMatchObject({ kind: "set", $set: { a: 1, c: 2 }, $unset: ["b"] });
    expect(stored({ event: "$settled" }).record["kind"]).toBe("custom");
  });

  test("of one event do not appear in the next event", () => {
    const person = { $set: { a: 1 }, $set_once: { b: 1 }, $unset: ["c"] };
    const both = { event: "both", distinct_id: "u", ...person, properties: person };
    const none = { event: "none", distinct_id: "u" };
    const { records } = take({
      batch: [none, both, none, { ...none, properties: { $set: {} } }, both],
    });
    expect(records.map(({ $set, $set_once, $unset }) => ({ $set, $set_once, $unset }))).toEqual([
      {},
      person,
      {},
      { $set: {} },
      person,
    ]);
  });

  describe("of an object", () => {
    const engaged = { isEngage: true };

    test("on /engage become a $identify event without an event name", () => {
      const said = { token: "t", $distinct_id: "u", $set: { email: "a@b.c" } };
      const { records, warnings } = take(said, engaged);
      expect(warnings).toEqual([]);
      expect(records[0]).toMatchObject({
        event: "$identify",
        kind: "identify",
        distinct_id: "u",
        $set: { email: "a@b.c" },
      });
      expect(
        take({ batch: [said, { ...said, event: null }] }, engaged).records.map(
          ({ event }) => event,
        ),
      ).toEqual(["$identify", "$identify"]);
      expect(take({ ...said, $set: undefined }, engaged).warnings).toEqual(["missing_set"]);
    });

    test("on /engage leave the event name unchanged", () => {
      expect(take({ event: "e", distinct_id: "u" }, engaged).records[0]).toMatchObject({
        event: "e",
        kind: "custom",
      });
      for (const event of ["", " ", 1, {}, []])
        expect(take({ event, distinct_id: "u" }, engaged).records).toEqual([]);
      expect(take({ batch: [1, null, "x", [], {}] }, engaged).records).toEqual([]);
    });

    test("on other paths do not become an event without an event name", () => {
      expect(take({ distinct_id: "u", $set: {} }).records).toEqual([]);
    });
  });

  const person = fc.option(
    fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 5 }),
    {
      nil: undefined,
    },
  );
  const names = fc.option(
    fc.oneof(
      fc.array(fc.string({ maxLength: 3 })),
      fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue()),
    ),
    {
      nil: undefined,
    },
  );

  test("are merged from the top level and from properties", () => {
    const clean = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value).replaceAll("\\u0000", "\ufffd")) as unknown;
    const listed = (value: object | undefined): string[] =>
      (Array.isArray(value) ? value : Object.keys(value ?? {})) as string[];
    fc.assert(
      fc.property(
        fc.record({ $set: person, $unset: names }),
        fc.record({ $set: person, $unset: names }),
        (top, nested) => {
          const { record } = storedText(
            JSON.stringify(
              { event: "e", distinct_id: "u", ...top, properties: { ...nested } },
              undefined,
              top.$set === undefined ? 0 : 1,
            ),
          );
          const [cleanTop, cleanNested] = [clean(top), clean(nested)] as [
            typeof top,
            typeof nested,
          ];
          const set = cleanTop.$set ?? cleanNested.$set;
          expect(record["$set"]).toEqual(set && { ...cleanNested.$set, ...cleanTop.$set });
          const unset = cleanTop.$unset ?? cleanNested.$unset;
          const expected =
            unset &&
            [...new Set([...listed(cleanTop.$unset), ...listed(cleanNested.$unset)])].sort();
          expect(record["$unset"] && [...(record["$unset"] as string[])].sort()).toEqual(expected);
          expect(record["properties"]).toEqual(cleanNested);
        },
      ),
      { numRuns: 800 },
    );
  });
});
