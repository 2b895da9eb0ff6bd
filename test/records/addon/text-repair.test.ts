import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../../src/records/native.ts";
import {
  growthBytesMax,
  Header,
  repairPlacesMax,
  type Scanner,
  ScanStatus,
} from "../../../src/records/table.ts";
import { createReferenceScanner } from "../../kit/reference-scanner/scanner.ts";

const native = createNativeScanner(1);
const reference = createReferenceScanner(1);

interface Repaired {
  readonly text: string;
  readonly malformed: readonly number[];
  readonly nonFinite: readonly number[];
}

function repairedBy(scanner: Scanner, body: Buffer, step: number): Repaired | undefined {
  expect(scanner.scan(Buffer.from(body))).not.toBe(ScanStatus.Ok);
  const { table } = scanner;
  const [malformed, nonFinite] = [table[Header.Malformed]!, table[Header.NonFinite]!];
  if (table[Header.RepairedBytes] === 0) {
    expect([malformed, nonFinite]).toEqual([0, 0]);
    return undefined;
  }
  const repair = {
    text: Buffer.alloc(table[Header.RepairedBytes]!),
    malformed: new Uint32Array(malformed),
    nonFinite: new Uint32Array(nonFinite),
    progress: new Uint32Array(5),
  };
  const { progress } = repair;
  while (progress[0]! < body.length)
    scanner.repair(body, Math.min(body.length, progress[0]! + step), repair);
  expect([...progress.subarray(0, 4)]).toEqual([
    body.length,
    repair.text.length,
    malformed,
    nonFinite,
  ]);
  return {
    text: repair.text.toString("latin1"),
    malformed: [...repair.malformed],
    nonFinite: [...repair.nonFinite],
  };
}

function repaired(text: string, step = 5): string | undefined {
  const body = Buffer.from(text, "latin1");
  const one = repairedBy(native, body, step);
  expect(one).toEqual(repairedBy(reference, body, step));
  return one?.text;
}

const bytes = fc.constantFrom(
  0x7f,
  0x80,
  0x8f,
  0x90,
  0x9f,
  0xa0,
  0xbf,
  0xc0,
  0xc1,
  0xc2,
  0xc3,
  0xdf,
  0xe0,
  0xe1,
  0xed,
  0xef,
  0xbd,
  0xf0,
  0xf4,
  0xf5,
  0xff,
  0x20,
  0x22,
  0x5c,
  0x61,
  0x7b,
  0x7d,
);
const highSurrogateFirst = /\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]/;

describe("repairing UTF-8", () => {
  test("replaces the same bytes as TextDecoder", () => {
    fc.assert(
      fc.property(
        fc.array(bytes, { maxLength: 24 }),
        fc.integer({ min: 1, max: 9 }),
        (inside, step) => {
          const body = Buffer.from([0x20, 0x7b, ...inside, 0x7d, 0x0a]);
          const decoded = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
          fc.pre(!Buffer.from(decoded).equals(body));
          const text = repairedBy(native, body, step);
          expect(text).toEqual(repairedBy(reference, body, step));
          const written = Buffer.from(text!.text, "latin1");
          if (!highSurrogateFirst.test(body.toString("latin1")))
            expect(written.toString()).toBe(decoded);
          for (const place of text!.malformed)
            expect(written.toString("latin1", place, place + 3)).toBe("\xef\xbf\xbd");
          expect(new Set(text!.malformed).size).toBe(text!.malformed.length);
        },
      ),
      { numRuns: 1_000 },
    );
  }, 60_000);

  test("joins a surrogate pair that is encoded as two sequences", () => {
    const [high, low] = ["\xed\xa0\xbd", "\xed\xb8\x80"];
    const [emoji, bad] = ["\xf0\x9f\x98\x80", "\xef\xbf\xbd"];
    for (const [from, to] of [
      [high + low, emoji],
      [high + low + high + low, emoji + emoji],
      [high + high + low, bad.repeat(3) + emoji],
      [low + high, bad.repeat(6)],
      [high, bad.repeat(3)],
      [`${high}x${low}`, `${bad.repeat(3)}x${bad.repeat(3)}`],
      [high + low.slice(0, 2), bad.repeat(5)],
      ["\xed\xa0\x80\xed\xb0\x80", "\xf0\x90\x80\x80"],
      ["\xed\xaf\xbf\xed\xbf\xbf", "\xf4\x8f\xbf\xbf"],
    ] as const) {
      expect(repaired(`["${from}"]`)).toBe(`["${to}"]`);
      expect(repaired(`["${from}"]`, 1)).toBe(`["${to}"]`);
    }
  });
});

const words = fc.constantFrom(
  "NaN",
  "Infinity",
  "-Infinity",
  "-",
  "nan",
  "NaNN",
  "Inf",
  "1",
  "null",
  '"NaN"',
  '"\\"',
  '"\\\\"',
  '"',
  "\\",
  ",",
  ":",
  "[",
  "]",
  "{",
  "}",
  '"a":',
  " ",
  "\xff",
);

describe("repairing NaN and Infinity", () => {
  test.each([
    ['{"a":NaN}', '{"a":null}'],
    ['{"a":[NaN,Infinity,-Infinity, NaN ]}', '{"a":[null,null,null, null ]}'],
    ['[{"NaN":"Infinity","x":-Infinity}]', '[{"NaN":"Infinity","x":null}]'],
    ['["\\"NaN",NaN,"\\\\",NaN]', '["\\"NaN",null,"\\\\",null]'],
    ["[NaN]\n", "[null]\n"],
  ])("replaces NaN and Infinity by null: %s", (text, expected) => {
    for (const step of [1, 2, 3, 7, 100]) expect(repaired(text, step)).toBe(expected);
  });

  test.each([
    '{"a":-NaN}',
    '{"a":nan}',
    '{"a":NAN}',
    '{"a":inf}',
    '{"a":+Infinity}',
    "[NaNN]",
    "[1NaN]",
    "{NaN:1}",
    "[NaN,}",
    '["NaN]',
    "[--Infinity]",
    "[NaN",
    "NaN",
    "[- Infinity]",
    "[NaN,1.]",
  ])("leaves %s unchanged", (text) => {
    expect(repaired(text)).toBeUndefined();
  });

  test("gives the same valid JSON in the addon and the reference", () => {
    fc.assert(
      fc.property(
        fc.array(words, { maxLength: 12 }),
        fc.integer({ min: 1, max: 9 }),
        (inside, step) => {
          const body = Buffer.from(`[${inside.join("")}]`, "latin1");
          fc.pre(native.scan(Buffer.from(body)) === ScanStatus.InvalidJson);
          const text = repairedBy(native, body, step);
          expect(text).toEqual(repairedBy(reference, body, step));
          if (text !== undefined)
            expect(JSON.parse(Buffer.from(text.text, "latin1").toString())).toBeInstanceOf(Array);
        },
      ),
      { numRuns: 1_500 },
    );
  }, 60_000);
});

describe("a text", () => {
  test.each(["\xff", '"\xff"', "{\xff", "[\xff}", "{\xff]", "]\xff[", "}\xff{", "\xff{}"])(
    "without the brackets of an object or array is not repaired: %j",
    (text) => {
      expect(repaired(text)).toBeUndefined();
    },
  );
});

describe("the recorded replacements of a repair", () => {
  test.each([
    ["at most one of each kind in an object", '[{"a":[NaN,"\xff",NaN,"\xff"]}]', [1, 1]],
    [
      "at most one of each kind in each of several objects",
      '[{"a":NaN,"b":NaN},{"a":NaN},{"\xff":"\xfe"}]',
      [1, 2],
    ],
    ["one before the first object, and one after it", '[NaN,NaN,{"a":1},NaN]', [0, 2]],
    [
      "at most one of each kind in an object with a brace in a string",
      '[{"a":NaN,"b":"{","c":NaN}]',
      [0, 1],
    ],
  ])("are %s", (_title, text, [malformed, nonFinite]) => {
    const body = Buffer.from(text, "latin1");
    for (const scanner of [native, reference]) {
      const noted = repairedBy(scanner, body, 1)!;
      expect([noted.malformed.length, noted.nonFinite.length]).toEqual([malformed, nonFinite]);
    }
  });

  test("are at most a million per kind", () => {
    const object = '{"a":NaN},';
    const body = Buffer.from(`[${object.repeat(repairPlacesMax)}{"a":NaN}]`);
    const noted = repairedBy(native, body, 100_000)!;
    expect(noted.nonFinite).toHaveLength(repairPlacesMax);
    expect(noted.text.endsWith('{"a":null},{"a":null}]')).toBe(true);
  });
});

test("replacements end when the text has grown by 2 MiB", () => {
  const count = growthBytesMax / 2;
  const body = Buffer.from(`{"${"\xff".repeat(count)}\xff\xff":NaN}`, "latin1");
  const { text } = repairedBy(native, body, 100_000)!;
  expect(text).toBe(`{"${"\xef\xbf\xbd".repeat(count)}??":null}`);
});

test("replacements are never written beyond their buffers", () => {
  const body = Buffer.from("[\xff,NaN]", "latin1");
  const repair = (text: number, places: readonly [number, number], progress: number[]) => () =>
    native.repair(body, body.length, {
      text: Buffer.alloc(text),
      malformed: new Uint32Array(places[0]),
      nonFinite: new Uint32Array(places[1]),
      progress: Uint32Array.from(progress),
    });
  expect(repair(10, [1, 1], [0, 0, 0, 0, 0])).not.toThrow();
  for (const [text, places, progress] of [
    [9, [1, 1], [0, 0, 0, 0, 0]],
    [10, [0, 1], [0, 0, 0, 0, 0]],
    [10, [1, 0], [0, 0, 0, 0, 0]],
    [10, [1, 1], [8, 0, 0, 0, 0]],
    [10, [1, 1], [0, 11, 0, 0, 0]],
    [10, [1, 1], [0, 0, 2, 0, 0]],
    [10, [1, 1], [0, 0, 0, 2, 0]],
    [10, [1, 1], [0, 0, 0, 0]],
  ] as const) {
    expect(repair(text, places, [...progress])).toThrow(TypeError);
  }
});
