// Tells by its first bytes what a body is: the payload, or a form, a text or a compressed body
// around it. The bytes are believed before headers and content types: JSON begins with a brace,
// gzip with its magic bytes. Decodes no more than a few bytes.

import { Ascii, isJsonSpace } from "../../platform/base/ascii.ts";
import { type Compression, looksGzipped } from "./codings.ts";
import { type FormFields, fieldsOf } from "./form-fields.ts";

/** The layers that have been taken off a body already, as bits: each comes once. */
export const Layer = {
  /**
   * gzip, deflate, br, zstd or lz64. Only one of them is taken off: with two, a few bytes would be
   * a bomb of bombs.
   */
  Compressed: 1,
  Form: 2,
  Base64: 4,
} as const;

type PayloadForm = FormFields | "json" | "gzip" | "twice" | "lz64" | "base64" | "unknown";

/** So many bytes of white space before the payload are skipped at most. */
const SPACE_BYTES_MAX = 1_024;
/** So many bytes of a text that may be base64 are decoded to see what is in it. */
const SAMPLE_BYTES = 64;

/** Says whether a body begins as JSON that holds events: a plain body is not checked for more. */
export function beginsAsJson(first: number | undefined): boolean {
  return first === Ascii.OpenBrace || first === Ascii.OpenBracket;
}

/**
 * Tells the form of a body. `layers` are those that have been taken off; `named` is the compression
 * that the request names, if any.
 */
export function formOf(bytes: Buffer, layers: number, named: Compression | undefined): PayloadForm {
  const at = payloadStart(bytes);
  if (beginsAsJson(bytes[at])) return "json";
  const isCompressed = (layers & Layer.Compressed) !== 0;
  if (looksGzipped(bytes)) return isCompressed ? "twice" : "gzip";
  const fields = (layers & Layer.Form) === 0 ? fieldsOf(bytes) : undefined;
  if (fields !== undefined) return fields;
  if (named === "lz64" && !isCompressed) return "lz64";
  if ((layers & Layer.Base64) === 0 && (named === "base64" || looksLikeBase64(bytes, at)))
    return "base64";
  return "unknown";
}

/** Finds where the payload begins, behind a byte order mark and some white space. */
function payloadStart(bytes: Buffer): number {
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const end = Math.min(bytes.length, SPACE_BYTES_MAX);
  while (at < end && isJsonSpace(bytes[at])) at++;
  return at;
}

/**
 * Judges by what the beginning decodes to: JSON, perhaps behind white space, or gzip. The alphabet
 * alone would not do, since `true` and `1234` are written in it. The rest of the body is checked as
 * it is decoded.
 */
function looksLikeBase64(bytes: Buffer, at: number): boolean {
  const text = bytes.toString("latin1", at, at + SAMPLE_BYTES);
  if (!/^[\w+/ -]{2}[\w+/ =-]{2}/.test(text)) return false;
  const start = Buffer.from(text.replaceAll(" ", "+"), "base64");
  return looksGzipped(start) || beginsAsJson(start[payloadStart(start)]);
}
