// Finds where the tokens of a JSON text begin and end, from its bytes alone, within given bounds.
// For bytes that are not JSON the answers mean nothing, but they stay within the bounds, and take
// time in proportion to them.

import type { Buffer } from "node:buffer";
import { Ascii, isJsonSpace, stringEnd } from "../../../platform/base/ascii.ts";

export function spaceEnd(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isJsonSpace(body[at])) at++;
  return at;
}

/** Where the white space that ends at `end` begins; `end` where there is none. */
export function spaceStart(body: Buffer, end: number, start: number): number {
  let at = end;
  while (at > start && isJsonSpace(body[at - 1])) at--;
  return at;
}

/**
 * Where the opening quote is of the string whose closing quote is at `closing`; -1 where none is
 * found from `start` on, or where the string has escapes.
 */
export function stringStart(body: Buffer, closing: number, start: number): number {
  if (closing <= start || body[closing] !== Ascii.Quote) return -1;
  for (let at = closing - 1; at >= start; at--) {
    if (body[at] === Ascii.Backslash) return -1;
    if (body[at] === Ascii.Quote) return at > start && body[at - 1] === Ascii.Backslash ? -1 : at;
  }
  return -1;
}

/**
 * The bytes [skipFrom, skipTo) of a text: whole values that are passed over unread, however long.
 */
export interface Skip {
  readonly skipFrom: number;
  readonly skipTo: number;
}

const nothingSkipped: Skip = { skipFrom: -1, skipTo: -1 };

/**
 * One past the last byte of the value that begins at `start`; `end` where the value does not end
 * before it.
 */
export function endOfValue(
  body: Buffer,
  start: number,
  end: number,
  { skipFrom, skipTo }: Skip = nothingSkipped,
): number {
  if (start === skipFrom) return Math.min(skipTo, end);
  const first = body[start];
  if (first === Ascii.Quote) return Math.min(stringEnd(body, start + 1, end) + 1, end);
  if (first !== Ascii.OpenBrace && first !== Ascii.OpenBracket) return endOfWord(body, start, end);
  let depth = 0;
  for (let at = start; at < end; at++) {
    if (at === skipFrom) at = skipTo;
    const byte = body[at];
    if (byte === Ascii.Quote) at = stringEnd(body, at + 1, end);
    else if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) depth++;
    else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return end;
}

function endOfWord(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && !isWordEnd(body[at])) at++;
  return at;
}

function isWordEnd(byte: number | undefined): boolean {
  return (
    byte === Ascii.Comma ||
    byte === Ascii.CloseBrace ||
    byte === Ascii.CloseBracket ||
    isJsonSpace(byte)
  );
}

/**
 * Where the string, number or word begins whose last byte is just before `end`; -1 where something
 * else ends there.
 */
export function startOfValue(body: Buffer, end: number, start: number): number {
  if (body[end - 1] === Ascii.Quote) return stringStart(body, end - 1, start);
  let at = end;
  while (at > start && isWordByte(body[at - 1]!)) at--;
  return at === end ? -1 : at;
}

/** A byte of a number, or of true, false and null. */
function isWordByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === Ascii.Minus ||
    byte === Ascii.Dot ||
    byte === Ascii.Plus ||
    byte === 0x45
  );
}
