import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../../src/records/native.ts";
import {
  depthMax,
  Header,
  ItemFlag,
  MoreShift,
  NotNormal,
  Row,
  type Scanner,
  ScanStatus,
} from "../../../src/records/table.ts";
import { mutations, readCorpus } from "../../fuzz/inputs.ts";
import { eventLikeJson } from "../../kit/event-like-json.ts";
import { createReferenceScanner } from "../../kit/reference-scanner/scanner.ts";
import { parses } from "../../kit/scan-outcome.ts";

const native = createNativeScanner(1);
const reference = createReferenceScanner(1);
const tooLong = ItemFlag.TooDeep | ItemFlag.LongNumber;

function plainFormBy(scanner: Scanner, text: Buffer): string | undefined {
  const body = Buffer.concat([Buffer.from('"\\'), text, Buffer.from('"\\')]);
  const target = Buffer.alloc(text.length + 3, "#");
  const written = scanner.normalise(body, 2, 2 + text.length, target, 3);
  if (written < 0) {
    expect(written).toBe(NotNormal.NotJson);
    return undefined;
  }
  expect(target.toString("latin1", 0, 3)).toBe("###");
  return target.toString("utf8", 3, 3 + written);
}

function plainForm(text: string | Buffer): string | undefined {
  const bytes = Buffer.from(text);
  const plain = plainFormBy(native, bytes);
  expect(plain).toBe(plainFormBy(reference, bytes));
  return plain;
}

describe("normalising JSON", () => {
  test("leaves the scan table unchanged", () => {
    const batch = [{ event: "a" }, { event: "b", properties: { $set: { c: 1 } } }, { event: "c" }];
    const body = Buffer.from(JSON.stringify({ api_key: "k", batch }));
    const target = Buffer.alloc(4_096);
    for (const scanner of [native, reference]) {
      expect(scanner.scan(body)).toBe(ScanStatus.Ok);
      for (let item = 0; item < batch.length; item++) {
        const table = Uint32Array.from(scanner.table);
        expect(table[Header.FirstItem]).toBe(item);
        for (const text of [
          '{"\\ud800":[1,2,{"a":1,"a":2}]}',
          '{"batch":[1,2,3]}',
          "nothing",
          "[".repeat(1_000),
        ]) {
          const bytes = Buffer.from(text);
          scanner.normalise(bytes, 0, bytes.length, target, 0);
          expect(scanner.table).toEqual(table);
        }
        const [start, end] = [
          table[Header.Words + Row.ItemStart],
          table[Header.Words + Row.ItemEnd],
        ];
        scanner.normalise(body, start!, end!, target, 0);
        expect(scanner.table).toEqual(table);
        scanner.scanMore(body);
      }
    }
  });

  describe("the normalised text", () => {
    test("is the same from the addon and the reference for event-like JSON", () => {
      fc.assert(
        fc.property(eventLikeJson, (text) => expectPlain(Buffer.from(text))),
        { numRuns: 1_000 },
      );
    }, 60_000);

    test("is the same from the addon and the reference for the fuzz corpus", () => {
      const corpus = readCorpus();
      const mutated = mutations(corpus, 2);
      const bodies = [...corpus, ...Array.from({ length: 1_500 }, () => mutated.next().value)];
      const target = Buffer.alloc(65_536);
      for (const body of bodies) {
        if (parses(body) === true && native.scan(Buffer.from(body)) === ScanStatus.Ok) {
          const flags = native.table[Header.Words + Row.MoreTypes]! >>> MoreShift.Flags;
          const isItem =
            native.table[Header.BatchType] === 0 && native.table[Header.RowCount] === 1;
          if (isItem && (flags & tooLong) === 0) expectPlain(body);
        } else if (body.length <= target.length) {
          expect(native.normalise(body, 0, body.length, target, 0)).toBeLessThanOrEqual(
            body.length,
          );
        }
      }
    }, 60_000);

    test("equals the output of JSON.stringify", () => {
      const keysThatStay = fc.string({ unit: "grapheme" }).filter((key) => !/^\d+$/.test(key));
      const values = fc.letrec((tie) => ({
        value: fc.oneof(
          fc.string({ unit: "grapheme" }),
          fc.integer(),
          fc.constant(null),
          tie("array"),
          tie("object"),
        ),
        array: fc.array(tie("value"), { maxLength: 12 }),
        object: fc.dictionary(keysThatStay, tie("value"), { maxKeys: 24 }),
      })).value;
      fc.assert(
        fc.property(values, fc.constantFrom(undefined, 1, "\t", "\n"), (value, indent) => {
          const text = JSON.stringify(value).replaceAll("\\u0000", "\ufffd");
          expect(plainForm(JSON.stringify(value, undefined, indent))).toBe(text);
        }),
        { numRuns: 1_000 },
      );
    });

    test.each(["12345678901234567890", "1e400", "-1E+400", "0.1000", "-0", "1E5"])(
      "keeps the text of the number %s",
      (n) => {
        expect(plainForm(`{"a": [ ${n} ,\n${n}]}`)).toBe(`{"a":[${n},${n}]}`);
      },
    );

    test.each([
      ['"\\ud800"', '"\ufffd"'],
      ['"a\\udc00b"', '"a\ufffdb"'],
      ['"\\ud83d\\ude00"', '"😀"'],
      ['"\\udc00\\ud800"', '"\ufffd\ufffd"'],
      ['"\\ud800\\u0041"', '"\ufffdA"'],
      ['"\\\\ud800"', '"\\\\ud800"'],
      ['"\\\\\\ud800"', '"\\\\\ufffd"'],
      ['{"\\ud800": "\\u0000"}', '{"\ufffd":"\ufffd"}'],
      [
        '"\\/\\u002f\\b\\u0008\\u001F\\u007f\\u00e9\\u20ac\\u0022\\u005c"',
        '"//\\b\\b\\u001f\u007fé€\\"\\\\"',
      ],
    ])("has one notation for the strings of %s", (text, plain) => {
      expect(plainForm(text)).toBe(plain);
    });

    test("has the last value of duplicate names at every level", () => {
      expect(plainForm('{"a":1,"\\u0061":2}')).toBe('{"a":2}');
      expect(plainForm('{"":1,"":2,"b":3,"":4}')).toBe('{"b":3,"":4}');
      expect(plainForm('[{"a":{"b":1,"b":2},"a":{"c":[{"d":1,"d":2}],"c":{"e":1,"e":2}}}]')).toBe(
        '[{"a":{"c":{"e":2}}}]',
      );
      expect(plainForm('{"__proto__":{"x":1}}')).toBe('{"__proto__":{"x":1}}');
      expect(plainForm('{"\\u0000":1,"\\ud800":2}')).toBe('{"\ufffd":2}');
    });

    test("has the last value of duplicate names among thousands of names", () => {
      const names = Array.from({ length: 5_000 }, (_, index) => `name ${(index * 7_919) % 3_000}`);
      const text = `{${names.map((name, index) => `"${name}":{"${name}":${index},"x":1,"x":2}`).join(" , ")}}`;
      const kept = new Map<string, number>();
      for (const [index, name] of names.entries()) {
        kept.delete(name);
        kept.set(name, index);
      }
      expect(plainForm(text)).toBe(
        `{${[...kept].map(([name, index]) => `"${name}":{"${name}":${index},"x":2}`).join()}}`,
      );
    });

    test(`is at most ${depthMax} levels deep`, () => {
      const nested = (depth: number) => `${'{"a":1,"a":'.repeat(depth)}[]${"}".repeat(depth)}`;
      expect(plainForm(nested(depthMax - 1))).toBe(nested(depthMax - 1).replaceAll('"a":1,', ""));
      expect(plainForm(nested(depthMax))).toBeUndefined();
      expect(plainForm("[".repeat(1_000_000))).toBeUndefined();
    });

    test("is absent for truncated input", () => {
      const text = Buffer.from('{"a\\u00e9\\ud83d\\ude00":[true,-1.5e3,"x\\n"],"b":{}}');
      for (let length = 0; length < text.length; length++) {
        expect(native.normalise(text, 0, length, Buffer.alloc(text.length), 0)).toBe(
          NotNormal.NotJson,
        );
      }
    });
  });

  test("throws on arguments that exceed the addon's memory", () => {
    const body = Buffer.from("[1,2,3]");
    const target = Buffer.alloc(7);
    const { normalise } = native;
    expect(normalise(body, 0, 7, target, 0)).toBe(7);
    for (const [start, end, at] of [
      [0, 8, 0],
      [3, 2, 0],
      [0, 7, 1],
      [0, 0, 8],
      [-1, 7, 0],
    ] as const) {
      expect(() => normalise(body, start, end, target, at)).toThrow(TypeError);
    }
    expect(() => normalise(body, 0, 7, body, 0)).toThrow("overlaps");
    expect(() => normalise([] as unknown as Buffer, 0, 0, target, 0)).toThrow(TypeError);
    expect(() => (normalise as unknown as () => void)()).toThrow(TypeError);
  });
});

function meaning(text: string): unknown {
  const clean = (value: string) => value.replaceAll("\0", "\ufffd").toWellFormed();
  const cleanAll = (value: unknown): unknown => {
    if (typeof value === "string") return clean(value);
    if (Array.isArray(value)) return value.map(cleanAll);
    if (typeof value !== "object" || value === null) return value;
    const members = Object.entries(value).map(
      ([key, inner]) => [clean(key), cleanAll(inner)] as const,
    );
    // JSON.parse preserves no order of names that become equal, so their values are not compared.
    const names = members.map(([key]) => key);
    const isDouble = (key: string) => names.indexOf(key) !== names.lastIndexOf(key);
    return new Map(members.map(([key, inner]) => [key, isDouble(key) ? undefined : inner]));
  };
  return cleanAll(JSON.parse(text));
}

function expectPlain(text: Buffer): void {
  const plain = plainForm(text);
  if (plain === undefined) throw new Error(`no plain form of ${text.toString("latin1")}`);
  expect(plainForm(plain)).toBe(plain);
  const sent = meaning(text.toString());
  const stored = meaning(plain);
  if (!text.includes("\\u0000") && !/\\u[dD][89a-fA-F]/.test(text.toString("latin1")))
    expect(stored).toEqual(sent);
  const scanned = Buffer.from(`{"batch":[${plain}]}`);
  expect(native.scan(scanned)).toBe(ScanStatus.Ok);
  expect(scanned.toString()).toBe(`{"batch":[${plain}]}`);
  const flags = native.table[Header.Words + Row.MoreTypes]! >>> MoreShift.Flags;
  expect(flags & (ItemFlag.DuplicateKey | ItemFlag.ReplacedCharacter)).toBe(0);
}
