import fc from "fast-check";
import { expect, test } from "vitest";
import { Line } from "../../src/records/lines.ts";
import { createNativeScanner, loadAddon } from "../../src/records/native.ts";
import { tableWords } from "../../src/records/table.ts";
import { recordOf } from "../kit/effect-lines.ts";

const { joinLines, readLines } = loadAddon();
const scanner = createNativeScanner(2);
const text = Buffer.from(`[${recordOf()},${recordOf({ $set: { a: 1 } })}]`);
const ends = Uint32Array.of(1 + recordOf().length, text.length - 1);
const place = Uint32Array.of(2, 0, 1, 7, 8);

function call(target: unknown, ...parameters: unknown[]): unknown {
  return Reflect.apply(target as () => unknown, undefined, parameters);
}

test("reading stored lines throws on arguments of the wrong type", () => {
  const words = new Uint32Array(2 * Line.Words);
  const good = [text, scanner.table, ends, place, words];
  scanner.scan(text);
  expect(call(readLines, ...good)).toBe(2);
  for (const index of good.keys())
    for (const wrong of [undefined, 1, new Float64Array(100), {}])
      expect(() => call(readLines, ...good.with(index, wrong as never))).toThrow(TypeError);
  for (const wrong of [
    [],
    [text],
    [text, 0, text.length + 1, ends],
    [text, 2, 1, ends],
    [text, 0, 1, text],
  ])
    expect(() => call(joinLines, ...wrong)).toThrow(TypeError);
});

test("reading stored lines throws on arrays that are too short", () => {
  const words = new Uint32Array(2 * Line.Words);
  scanner.scan(text);
  const { table } = scanner;
  expect(() => readLines(text, table, ends, place, words.subarray(1))).toThrow(TypeError);
  expect(() => readLines(text, table, ends.subarray(1), place, words)).toThrow(TypeError);
  expect(() => readLines(text, table, ends, Uint32Array.of(2, 0, 1), words)).toThrow(TypeError);
  const full = new Uint32Array(tableWords(2)).fill(7);
  expect(() => readLines(text, full, ends, place, words)).toThrow(TypeError);
});

test("reading stored lines finds no line for offsets beyond the text", () => {
  const words = new Uint32Array(2 * Line.Words);
  scanner.scan(text);
  const wrongWord = fc.tuple(fc.nat(tableWords(2) - 1), fc.oneof(fc.nat(), fc.nat(2_000)));
  fc.assert(
    fc.property(fc.array(wrongWord, { minLength: 1, maxLength: 4 }), fc.nat(), (wrong, far) => {
      const table = Uint32Array.from(scanner.table);
      for (const [at, word] of wrong) if (at > 19) table[at] = word;
      readLines(text, table, ends, place, words);
      readLines(text, table, ends, Uint32Array.of(2, far, far, 7, 8), words);
      readLines(text, table, Uint32Array.of(far, 2 ** 32 - 1), place, words);
    }),
  );
  expect(readLines(text, scanner.table, Uint32Array.of(2 ** 32 - 1, 9), place, words)).toBe(2);
  expect([words[Line.Flags], words[Line.Words + Line.Flags]]).toEqual([0, 0]);
});

test("joining stored lines counts all lines if the output array is small", () => {
  const few = new Uint32Array(2);
  const lines = Buffer.from("x\na\n\nbc\n");
  expect(joinLines(lines, 1, 7, few)).toBe(4);
  expect([...few]).toEqual([1, 3]);
  expect(lines.toString()).toBe("x,a,,bc\n");
  const all = new Uint32Array(5);
  expect(joinLines(Buffer.from("\n"), 0, 1, all)).toBe(2);
  expect(joinLines(Buffer.alloc(0), 0, 0, all)).toBe(1);
});
