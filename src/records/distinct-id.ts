// Converts an id as clients send it (any JSON value) to the stored text: at most 400 characters, no
// NUL. A longer id is shortened to its beginning and a hash of the whole id, so that two ids never
// become the same. Parses no object, array or number, and only the beginning of a long value, so it
// never throws for a scanned value.

import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import { Ascii } from "../platform/base/ascii.ts";
import { isString } from "./item-view.ts";
import type { TokenType } from "./table.ts";
import { sequenceBytes, stringBeginning } from "./token-beginning.ts";

/**
 * Maximum number of code points of a stored id. The columns of PostHog for ids and group keys have
 * this length.
 */
export const distinctIdCharactersMax = 400;

/** Number of characters of a SHA-256 in base64url, which follows a tilde. */
const hashCharacters = 43;
/** Number of characters of a longer id that are stored before its hash. */
export const idBeginningCharacters = distinctIdCharactersMax - hashCharacters - 1;

/**
 * Number of bytes parsed of an id. An id of 400 characters takes up to 4,802, with each character
 * written as two escapes.
 */
const idTokenBytesRead = 8_192;

interface DistinctIdText {
  /** Stored text; empty if the id is only white space. */
  readonly text: string;
  /** Whether the id was too long, so that the text is its beginning and a hash. */
  readonly cut: boolean;
}

/**
 * Returns the stored text of the token body[start, end) of the given type (not Absent, Null or
 * EmptyString). For tokens that the record writer cannot copy: escaped or long strings, and other
 * values, which become their compact JSON text.
 */
export function distinctIdText(
  body: Buffer,
  start: number,
  end: number,
  type: TokenType,
): DistinctIdText {
  const isText = isString(type);
  const text = isText
    ? stringBeginning(body, start, end, idTokenBytesRead)
    : compactBeginning(body, start, end);
  if (text.trim() === "") return { text: "", cut: false };
  if (end - start <= idTokenBytesRead) {
    const clean = cleanText(text);
    const stored = shortened(clean);
    return { text: stored, cut: stored !== clean };
  }
  const all = isText ? body.subarray(start + 1, end - 1) : body.subarray(start, end);
  return { text: withHash(cleanText(text), all), cut: true };
}

/** Returns the stored form of a text that is an id. */
export function storedIdText(text: string): string {
  return shortened(cleanText(text));
}

function cleanText(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}

function shortened(text: string): string {
  if (text.length <= distinctIdCharactersMax) return text;
  return firstCharacters(text, distinctIdCharactersMax).length === text.length
    ? text
    : withHash(text, Buffer.from(text));
}

/**
 * Returns the beginning of the text and a hash of `all`, the whole id, which begins with the text.
 */
function withHash(text: string, all: Buffer): string {
  return `${firstCharacters(text, idBeginningCharacters)}~${hash("sha256", all, "base64url")}`;
}

/** Returns the beginning of a JSON text without the white space between its tokens. */
function compactBeginning(body: Buffer, start: number, end: number): string {
  const readEnd = Math.min(end, start + idTokenBytesRead);
  const kept = Buffer.allocUnsafe(readEnd - start);
  let length = 0;
  let inString = false;
  for (let at = start; at < readEnd; at++) {
    const byte = body[at]!;
    if (inString || !isSpace(byte)) kept[length++] = byte;
    if (byte === Ascii.Quote) inString = !inString;
    else if (inString && byte === Ascii.Backslash && at + 1 < readEnd) kept[length++] = body[++at]!;
  }
  return kept.toString("utf8", 0, wholeCharactersEnd(kept, length));
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

/** Returns the length without the last character if not all of its bytes were read. */
function wholeCharactersEnd(bytes: Buffer, length: number): number {
  let lead = length - 1;
  while (lead > 0 && (bytes[lead]! & 0xc0) === 0x80) lead--;
  return lead + sequenceBytes(bytes[lead]!) > length ? lead : length;
}

function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  let units = 0;
  for (let characters = 0; characters < count && units < text.length; characters++) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(0, units);
}
