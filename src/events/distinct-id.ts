// Turns a distinct id as clients send it (any JSON value) into the text that is stored: at most 200
// characters, no NUL. It reads only the beginning of the value, and parses no object, array or
// number, so nothing that a scanner has accepted makes it throw.

import { Buffer } from "node:buffer";
import { Ascii } from "../base/ascii.ts";
import type { TokenType } from "../scan/table.ts";
import { isString } from "./item-view.ts";
import { sequenceBytes, stringBeginning, tokenBytesRead } from "./token-beginning.ts";

/** Counted in code points, as PostHog's capture does. */
export const distinctIdCharactersMax = 200;

/**
 * The most bytes that 200 characters take in UTF-8, and one character more, so that the last of the
 * 200 is never cut.
 */
const keptBytesMax = 4 * (distinctIdCharactersMax + 1);

interface DistinctIdText {
  /** "" where the id is nothing but white space. */
  readonly text: string;
  readonly cut: boolean;
}

/**
 * The stored text of the token body[start, end) of the given type (not Absent, Null or
 * EmptyString). It is for tokens that the record writer cannot copy: escaped or long strings, and
 * values that are no strings, which become their compact JSON text.
 */
export function distinctIdText(
  body: Buffer,
  start: number,
  end: number,
  type: TokenType,
): DistinctIdText {
  const text = isString(type)
    ? stringBeginning(body, start, end)
    : compactBeginning(body, start, end);
  if (text.trim() === "") return { text: "", cut: false };
  const kept = storedIdText(text);
  return { text: kept, cut: kept.length !== text.length || end - start > tokenBytesRead };
}

/** How a text is stored as a distinct id; its length in UTF-16 changes only where it is cut. */
export function storedIdText(text: string): string {
  const clean = text.replaceAll("\0", "\ufffd").toWellFormed();
  return firstCharacters(clean, distinctIdCharactersMax);
}

/**
 * The beginning of a JSON text without the white space between its tokens, long enough for the
 * characters that are kept.
 */
function compactBeginning(body: Buffer, start: number, end: number): string {
  const readEnd = Math.min(end, start + tokenBytesRead);
  const kept = Buffer.allocUnsafe(keptBytesMax);
  let length = 0;
  let inString = false;
  for (let at = start; at < readEnd && length < keptBytesMax; at++) {
    const byte = body[at]!;
    if (inString || !isSpace(byte)) kept[length++] = byte;
    if (byte === Ascii.Quote) inString = !inString;
    else if (inString && byte === Ascii.Backslash && at + 1 < readEnd && length < keptBytesMax)
      kept[length++] = body[++at]!;
  }
  return kept.toString("utf8", 0, wholeCharactersEnd(kept, length));
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

/** The length without the last character, where not all of its bytes were read. */
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
