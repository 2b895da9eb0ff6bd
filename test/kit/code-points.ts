import fc from "fast-check";

function codePointOf(text: unknown): number {
  if (typeof text === "string" && [...text].length === 1) return text.codePointAt(0)!;
  throw new Error("not a single code point");
}

/**
 * Any code point except surrogates, for `fc.string({ unit: codePoint })`. The texts are those of
 * `unit: "binary"`, which first builds a map of all code points in each process.
 */
export const codePoint = fc
  .integer({ min: 0, max: 0x10_ffff })
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map(String.fromCodePoint, codePointOf);
