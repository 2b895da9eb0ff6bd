// Converts an id to the text that is stored. It has at most 400 characters and no NUL. A longer id
// is replaced by its beginning and a hash of the whole id, so that different ids stay different.

import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import { Ascii } from "../platform/base/ascii.ts";
import { isString } from "./item-view.ts";
import type { TokenType } from "./table.ts";
import { sequenceBytes, stringBeginning } from "./token-beginning.ts";

/** The maximum number of code points, as in PostHog's columns for ids and group keys. */
export const distinctIdCharactersMax = 400;

const hashCharacters = 43;
export const idBeginningCharacters = distinctIdCharactersMax - hashCharacters - 1;

/** If each of 400 characters is written as two escapes, the token has 4,802 bytes. */
const idTokenBytesRead = 8_192;

interface DistinctIdText {
  readonly text: string;
  readonly cut: boolean;
}

/**
 * Converts a string that is long or has escapes, or a value that is not a string. Such a value
 * becomes compact JSON. The type must not be Absent, Null or EmptyString.
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

function withHash(text: string, all: Buffer): string {
  return `${firstCharacters(text, idBeginningCharacters)}~${hash("sha256", all, "base64url")}`;
}

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

function wholeCharactersEnd(bytes: Buffer, length: number): number {
  let lead = length - 1;
  while (lead > 0 && (bytes[lead]! & 0xc0) === 0x80) lead--;
  return lead + sequenceBytes(bytes[lead]!) > length ? lead : length;
}

function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  let units = 0;
  for (let characters = 0; characters < count && units < text.length; characters++)
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  return text.slice(0, units);
}
