import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PropertyWrites, Rejection } from "../../../../src/readers/effects/types.ts";
import { readLine, recordOf } from "../../../kit/effect-lines.ts";

interface Written {
  readonly person: PropertyWrites | undefined;
  readonly rejections: readonly Rejection[];
}

function written(members: string, more: Readonly<Record<string, unknown>> = {}): Written {
  return readLine(recordOf({ $set: {}, ...more }).replace('"$set":{}', `"$set":{${members}}`))
    .effect;
}

describe("a property value", () => {
  test.each([
    "1",
    "-0",
    "1.50",
    "1E3",
    "1e400",
    "-1e-10000",
    "9007199254740993",
    "0.1e+2",
    "1234567890".repeat(40),
    '"x"',
    '"é😀"',
    "true",
    "false",
    "null",
    '""',
    "[]",
    "{}",
    '[1,2.0,"a"]',
    '{"a":{"b":[null]}}',
    `${"[".repeat(100)}${"]".repeat(100)}`,
  ])("%s is stored as it was sent", (json) => {
    expect(written(`"a":${json}`)).toMatchObject({
      person: { set: [["a", json]] },
      rejections: [],
    });
  });
});

describe("an unusual property value", () => {
  test.each([
    ['"a\\u0000b"', '"a\ufffdb"'],
    ['"\\ud800"', '"\ufffd"'],
    ['{"\\u0000":"\\udc00"}', '{"\ufffd":"\ufffd"}'],
    ['"\\u00e9\\/\\n"', '"é/\\n"'],
    ['[ 1 , { "a" : 1.0 } ]', '[1,{"a":1.0}]'],
  ])("%s is normalised and stored as %s", (json, plain) => {
    expect(written(`"a":${json}`).person?.set).toEqual([["a", plain]]);
  });
});

describe("an invalid property", () => {
  test.each([
    ["1e10001", "number_out_of_range"],
    ["-1E-99999999999999999999", "number_out_of_range"],
    ["1234567890".repeat(40).concat("1"), "number_out_of_range"],
    ['{"a":[1e99999]}', "number_out_of_range"],
    [`${"[".repeat(101)}${"]".repeat(101)}`, "too_deep"],
    [`${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}`, "too_deep"],
    [`${"[ ".repeat(100_000)}${"]".repeat(100_000)}`, "too_deep"],
  ])("is rejected if its value is out of range or too deep: row %#", (json, reason) => {
    const { person, rejections } = written(`"before":1,"a":${json},"behind":2`);
    expect(person?.set).toEqual([
      ["before", "1"],
      ["behind", "2"],
    ]);
    expect(rejections).toEqual([{ reason, detail: '$set: the value of "a" cannot be stored' }]);
  });

  test("is rejected if its name is too long", () => {
    const longest = "é".repeat(200);
    const { person, rejections } = written(
      `"${longest}":1,"${longest}x":2,"${"\\u00e9".repeat(200)}":3`,
    );
    expect(person?.set).toEqual([[longest, "3"]]);
    expect(rejections.map(({ reason }) => reason)).toEqual(["name_too_long"]);
    expect(written(`"${"x".repeat(1_000_000)}":1`).rejections[0]?.detail.length).toBeLessThan(200);
  });

  test("is rejected if the event has no space left", () => {
    const half = JSON.stringify("x".repeat(262_000));
    const { person, rejections } = written(`"b":${half},"c":1`, {
      $set_once: { a: "x".repeat(262_000), tiny: 1 },
      properties: { filler: 1 },
    });
    expect(person?.once.map(([name]) => name)).toEqual(["a", "tiny"]);
    expect(person?.set.map(([name]) => name)).toEqual(["b", "c"]);
    expect(rejections).toEqual([]);
    const over = written(`"b":${half},"big":"${"x".repeat(300)}","c":1`, {
      $set_once: { a: "x".repeat(262_000) },
    });
    expect(over.person?.set.map(([name]) => name)).toEqual(["b", "c"]);
    expect(over.rejections.map(({ reason }) => reason)).toEqual(["properties_too_large"]);
  });
});

test("an event writes at most 1,000 properties", () => {
  const names = (letter: string, count: number) =>
    Array.from({ length: count }, (_, at) => `${letter}${at}`);
  const objectOf = (all: readonly string[]) => Object.fromEntries(all.map((name) => [name, 1]));
  const line = (once: number, set: number, unset: number) =>
    readLine(
      recordOf({
        $set_once: objectOf(names("a", once)),
        $set: objectOf(names("b", set)),
        $unset: names("c", unset),
      }),
    ).effect;
  expect(line(250, 500, 250).rejections).toEqual([]);
  const { person, rejections } = line(50, 2_000, 20);
  expect(person?.once.length).toBe(50);
  expect(person?.set.map(([name]) => name)).toEqual(names("b", 950));
  expect(person?.unset).toEqual([]);
  const detail = "an event writes at most 1000 properties, so later ones are not applied";
  expect(rejections).toEqual(
    ["$set", "$unset"].map((field) => ({
      reason: "properties_too_large",
      detail: `${field}: ${detail}`,
    })),
  );
});

describe("a property name", () => {
  test.each(["__proto__", "constructor", "toString", "", " ", "é", "😀", "a.b", "$set"])(
    "may be %j",
    (name) => {
      const text = JSON.stringify(name);
      expect(written(`${text}:1`).person?.set).toEqual([[name, "1"]]);
      const line = readLine(recordOf({ $unset: [name] }));
      expect(line.effect.person?.unset).toEqual([name]);
    },
  );

  test("is unescaped, and its last value is written", () => {
    const { person } = written('"a":1,"\\u0061":2,"b\\u0000":1,"b\ufffd":2,"\\ud800":3');
    expect(person?.set).toEqual([
      ["a", "2"],
      ["b\ufffd", "2"],
      ["\ufffd", "3"],
    ]);
  });

  test("is written only if its last value is valid", () => {
    expect(written('"a":1,"a":1e99999').person).toBeUndefined();
    expect(written('"a":1e99999,"a":1')).toMatchObject({
      person: { set: [["a", "1"]] },
      rejections: [],
    });
  });

  test("is the only valid member of a list of names", () => {
    const { person, rejections } = readLine(recordOf({ $unset: ["a", 7, ["b"], "a"] })).effect;
    expect(person?.unset).toEqual(["a"]);
    const detail = "$unset holds a value that is not a name (and 1 more of $unset)";
    expect(rejections).toEqual([{ reason: "invalid_field", detail }]);
  });
});

test("an event has one rejection per field", () => {
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  const $set = Object.fromEntries(numbers.map((n) => [`${n}`.padStart(401, "k"), n]));
  const line = recordOf({ $set, $set_once: 7, $unset: numbers, properties: { $groups: "co" } });
  const { rejections } = readLine(line).effect;
  expect(rejections.map(({ reason }) => reason)).toEqual([
    "invalid_field",
    "name_too_long",
    "invalid_field",
    "invalid_field",
  ]);
  const tails = rejections.map(({ detail }) => detail.replace(/^.*\(/, ""));
  expect(tails.slice(0, 3)).toEqual([
    "$set_once is not an object",
    "and 99 more of $set)",
    "and 99 more of $unset)",
  ]);
});

const json = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.json({ maxDepth: 4 }).map((text) => JSON.stringify(JSON.parse(text), undefined, 1)),
);

test("every property value is read back as it was written", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "grapheme", maxLength: 20 }), json), (values) => {
      const members = Object.entries(values).map(
        ([name, text]) => `${JSON.stringify(name)}: ${text}`,
      );
      const line = recordOf({ $set: {} }).replace(
        '"$set":{}',
        () => `"$set":{${members.join(" ,\t").replaceAll("\n", " ")}}`,
      );
      const expected = Object.entries(values).map(([name, text]) => [name, JSON.parse(text)]);
      const set = readLine(line).effect.person?.set ?? [];
      expect(set.map(([name, text]) => [name, JSON.parse(text)])).toEqual(expected);
      for (const [, text] of set) expect(text).not.toMatch(/^\s|\s$|[\n\t]/);
    }),
  );
});
