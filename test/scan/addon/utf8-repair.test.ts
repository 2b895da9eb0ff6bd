import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../../src/scan/native.ts";
import { createReferenceScanner } from "../../../src/scan/reference.ts";
import { Header, malformedMax, type Scanner, ScanStatus } from "../../../src/scan/table.ts";

const native = createNativeScanner(1);
const reference = createReferenceScanner(1);

/**
 * The repaired text and its places, by steps of so many bytes; undefined where there is nothing to
 * repair.
 */
function repairedBy(
  scanner: Scanner,
  body: Buffer,
  step: number,
): { text: string; places: number[] } | undefined {
  expect(scanner.scan(Buffer.from(body))).toBe(ScanStatus.InvalidUtf8);
  const malformed = scanner.table[Header.Malformed]!;
  if (malformed === 0) return undefined;
  const text = Buffer.alloc(scanner.table[Header.RepairedBytes]!);
  const repair = { text, places: new Uint32Array(malformed), progress: new Uint32Array(3) };
  while (repair.progress[0]! < body.length) {
    scanner.repair(body, Math.min(body.length, repair.progress[0]! + step), repair);
  }
  expect([...repair.progress]).toEqual([body.length, text.length, malformed]);
  return { text: text.toString("latin1"), places: [...repair.places] };
}

const bytes = fc.constantFrom(
  ...[
    0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xdf, 0xe0, 0xe1, 0xed, 0xef,
    0xbd, 0xf0, 0xf4,
  ],
  ...[0xf5, 0xff, 0x20, 0x22, 0x61, 0x7d],
);

describe("repaired bodies are UTF-8", () => {
  test("the addon and the reference replace what TextDecoder replaces, at the same places, whatever the steps", () => {
    fc.assert(
      fc.property(
        fc.array(bytes, { maxLength: 24 }),
        fc.integer({ min: 1, max: 9 }),
        (inside, step) => {
          const body = Buffer.from([0x20, 0x7b, ...inside, 0x7d, 0x0a]);
          const decoded = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
          fc.pre(!Buffer.from(decoded).equals(body));
          const repaired = repairedBy(native, body, step);
          expect(repaired).toEqual(repairedBy(reference, body, step));
          const text = Buffer.from(repaired!.text, "latin1");
          expect(text.toString()).toBe(decoded);
          for (const place of repaired!.places)
            expect(text.toString("latin1", place, place + 3)).toBe("\xef\xbf\xbd");
          expect(new Set(repaired!.places).size).toBe(repaired!.places.length);
        },
      ),
      { numRuns: 10_000 },
    );
  }, 60_000);

  test("what is no object, or has too much to repair, is not repaired", () => {
    for (const text of [
      "\xff",
      '"\xff"',
      "{\xff",
      "[\xff}",
      "{\xff]",
      "]\xff[",
      "}\xff{",
      "\xff{}",
      "  ",
    ]) {
      if (!text.includes("\xff")) continue;
      const body = Buffer.from(text, "latin1");
      expect(repairedBy(native, body, 1)).toBeUndefined();
      expect(repairedBy(reference, body, 1)).toBeUndefined();
    }
    for (const scanner of [native, reference]) {
      expect(repairedBy(scanner, Buffer.from(" [\xff]\n", "latin1"), 1)?.text).toBe(
        " [\xef\xbf\xbd]\n",
      );
    }
    const most = Buffer.alloc(malformedMax + 2, 0xff);
    most[0] = 0x7b;
    most[most.length - 1] = 0x7d;
    expect(repairedBy(native, most, 100_000)?.places).toHaveLength(malformedMax);
    const more = Buffer.concat([
      Buffer.from("{"),
      most.subarray(1, -1),
      Buffer.from("\xff}", "latin1"),
    ]);
    expect(repairedBy(native, more, 100_000)).toBeUndefined();
  });

  test("the addon refuses to write past the text or its places", () => {
    const body = Buffer.from("{\xff}", "latin1");
    const repair = (text: number, places: number, progress: number[]) => () =>
      native.repair(body, 3, {
        text: Buffer.alloc(text),
        places: new Uint32Array(places),
        progress: Uint32Array.from(progress),
      });
    expect(repair(5, 1, [0, 0, 0])).not.toThrow();
    for (const [text, places, progress] of [
      [4, 1, [0, 0, 0]],
      [5, 0, [0, 0, 0]],
      [5, 1, [4, 0, 0]],
      [5, 1, [0, 6, 0]],
      [5, 1, [0, 0, 2]],
      [5, 1, [0, 0]],
    ] as const) {
      expect(repair(text, places, [...progress])).toThrow(TypeError);
    }
  });
});
