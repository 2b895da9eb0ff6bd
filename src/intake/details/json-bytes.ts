// Where the tokens of a JSON text begin and end, told from its bytes alone, within bounds. Of what
// is no JSON the answers mean nothing, but they stay within the bounds, and take time in proportion
// to them.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../base/ascii.ts";

function isSpace(byte: number | undefined): boolean {
  return (
    byte === Ascii.Space ||
    byte === Ascii.LineFeed ||
    byte === Ascii.CarriageReturn ||
    byte === Ascii.Tab
  );
}

export function spaceEnd(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isSpace(body[at])) at++;
  return at;
}

/** Where white space before `end` starts. */
export function spaceStart(body: Buffer, end: number, start: number): number {
  let at = end;
  while (at > start && isSpace(body[at - 1])) at--;
  return at;
}

/** Where the closing quote is, from within the text; `end` where that is not reached. */
export function stringEnd(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && body[at] !== Ascii.Quote) at += body[at] === Ascii.Backslash ? 2 : 1;
  return Math.min(at, end);
}

/**
 * Where the opening quote is, from the closing one; -1 where it is not reached, or the text has
 * escapes.
 */
export function stringStart(body: Buffer, closing: number, start: number): number {
  if (closing <= start || body[closing] !== Ascii.Quote) return -1;
  for (let at = closing - 1; at >= start; at--) {
    if (body[at] === Ascii.Backslash) return -1;
    if (body[at] === Ascii.Quote) return at > start && body[at - 1] === Ascii.Backslash ? -1 : at;
  }
  return -1;
}

/** Whole values inside a text that are passed over unread, however long. */
export interface Skip {
  readonly skipFrom: number;
  readonly skipTo: number;
}

const nothingSkipped: Skip = { skipFrom: -1, skipTo: -1 };

/** One past the value's last byte; `end` where that is not reached. */
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
    isSpace(byte)
  );
}

/** Where a text, number or word starts that ends before `end`; below `start` for anything else. */
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
