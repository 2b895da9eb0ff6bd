// The vectors come from lz-string 1.5.0 (compressToBase64).

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BodyBuffer, BodyMemory } from "../../../src/gateway/body/body-buffer.ts";
import { LzDecoder } from "../../../src/gateway/body/lz-decoder.ts";
import { LzWriter, lzBomb, lzEncode } from "../../kit/lz.ts";

interface Outcome {
  readonly text?: string;
  readonly detail?: string;
  readonly held: number;
  readonly steps: number;
}

function decoded(text: string, bytesMax = 100_000_000, isKnown = true): Outcome {
  let held = 0;
  const hold = (bytes: number): boolean => {
    held += bytes;
    return true;
  };
  const options = { bytesMax, memory: new BodyMemory(), isKnown: () => isKnown, hold };
  const decoder = new LzDecoder(Buffer.from(text, "latin1"), options);
  for (let steps = 1; ; steps++) {
    const result = decoder.step();
    if (result instanceof BodyBuffer) return { text: result.bytes().toString(), held, steps };
    if (result !== undefined) {
      decoder.free();
      return { detail: result.detail, held, steps };
    }
  }
}

const vectors: [string, string][] = [
  ["{}", "N4XyA==="],
  [
    '[{"event":"a","properties":{"token":"phc_x","distinct_id":"u"}}]',
    "NobwRApgbhB2AuYBcYCGYA0YAOAnA9thLvAJYQDOy48+A1nMjgBYDGA+gB6ZgAmpFMrFbx2pXkwCuYAL4yAukA==",
  ],
  ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "IY18ZxA="],
  ["äöü ß", "CcN4PwBA+0A="],
  ["日本語", "qemhpzR5UUA="],
  ["😀 and 😀", "rwbgA9gECGB2AmakA==="],
  ["\u0000\u0001", "AAQCA==="],
];

describe("the lz-string decoder", () => {
  test.each(vectors)("decodes %j from %s", (text, compressed) => {
    expect(lzEncode(text)).toBe(compressed);
    expect(decoded(compressed).text).toBe(text);
  });

  test("restores any text, with U+FFFD for half a surrogate pair", () => {
    const unit = fc.oneof(
      fc.integer({ min: 0, max: 0x7f }),
      fc.integer({ min: 0, max: 0xffff }),
      fc.constant(0xd83d),
    );
    const units = fc.array(fc.oneof(unit, fc.constantFrom(0x61, 0x62, 0xde00)), { maxLength: 300 });
    fc.assert(
      fc.property(units, (codes) => {
        const text = String.fromCharCode(...codes);
        expect(decoded(lzEncode(text)).text).toBe(text.toWellFormed());
      }),
      { numRuns: 500 },
    );
  });

  test("decodes arbitrary bytes or reports an error", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(..."ABCDEgq3+/= é"), maxLength: 200 }),
        (text) => {
          const { text: result, detail } = decoded(text);
          expect(result ?? detail).toBeTypeOf("string");
        },
      ),
      { numRuns: 800 },
    );
  });

  test("reports an error for truncated text or trailing data", () => {
    const whole = lzEncode(
      JSON.stringify({ event: "a", properties: { text: "äöü 😀".repeat(20) } }),
    );
    const bare = whole.replace(/=+$/, "");
    for (let length = 0; length < bare.length - 1; length++) {
      expect(decoded(bare.slice(0, length)).detail).toBe(
        "The body is not valid lz64: unexpected end of data",
      );
    }
    expect(decoded(bare).text).toBe(decoded(whole).text);
    expect(decoded(`${whole}\n`).text).toBe(decoded(whole).text);
    for (const more of ["BBBB", "=====", "and more"]) {
      expect(decoded(whole + more).detail).toBe(
        "The body is not valid lz64: more data after the end",
      );
    }
    expect(decoded(`${whole.slice(0, 9)}*${whole.slice(10)}`).detail).toBe(
      "The body is not valid lz64: a character that is not base64",
    );
  });

  test("reports an error for an unknown phrase", () => {
    const writer = new LzWriter();
    writer.literal(0x61);
    writer.phrase(6);
    expect(decoded(writer.end()).detail).toBe(
      "The body is not valid lz64: a reference to a missing phrase",
    );
    const first = new LzWriter();
    first.phrase(3);
    expect(decoded(first.end()).detail).toBe(
      "The body is not valid lz64: a reference to a missing phrase",
    );
  });

  test("limits the output by the size limit and the bytes sent", () => {
    const bomb = lzBomb(50_000_000);
    expect(bomb.length).toBeLessThan(30_000);
    const small = decoded(bomb, 1_000_000);
    expect(small.detail).toBe("The body has more than 1000000 bytes after decompression");
    const unknown = decoded(bomb, 100_000_000, false);
    expect(unknown.detail).toMatch(
      /^The body has more than 8388608 bytes after decompression, and more than 200 times the bytes sent/,
    );
    expect(unknown.held).toBeLessThan(8_388_608 + 1_000_000);
    const known = decoded(bomb, 100_000_000);
    expect(known.detail).toMatch(/and more than 1032 times the bytes sent$/);
    expect(known.steps).toBeGreaterThan(100);
  });

  test("counts the memory of the phrase dictionary", () => {
    const text = Array.from({ length: 60_000 }, (_, n) =>
      String.fromCharCode(0x100 + ((n * 7_919) % 30_000)),
    ).join("");
    const { text: result, held } = decoded(lzEncode(text));
    expect(result).toBe(text);
    expect(held).toBeGreaterThan(Buffer.byteLength(text) + 60_000 * 8);
  });
});
