// Where the tokens of a JSON text begin and end, told from its bytes alone, within bounds. Of what
// is no JSON the answers mean nothing, but they stay within the bounds, and take time in proportion
// to them.

import type { Buffer } from "node:buffer";

export const Byte = {
  Tab: 0x09,
  LineFeed: 0x0a,
  CarriageReturn: 0x0d,
  Space: 0x20,
  Quote: 0x22,
  Comma: 0x2c,
  Colon: 0x3a,
  OpenBracket: 0x5b,
  Backslash: 0x5c,
  CloseBracket: 0x5d,
  OpenBrace: 0x7b,
  CloseBrace: 0x7d,
} as const;

function isSpace(byte: number | undefined): boolean {
  return (
    byte === Byte.Space ||
    byte === Byte.LineFeed ||
    byte === Byte.CarriageReturn ||
    byte === Byte.Tab
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
  while (at < end && body[at] !== Byte.Quote) at += body[at] === Byte.Backslash ? 2 : 1;
  return Math.min(at, end);
}

/**
 * Where the opening quote is, from the closing one; -1 where it is not reached, or the text has
 * escapes.
 */
export function stringStart(body: Buffer, closing: number, start: number): number {
  if (closing <= start || body[closing] !== Byte.Quote) return -1;
  for (let at = closing - 1; at >= start; at--) {
    if (body[at] === Byte.Backslash) return -1;
    if (body[at] === Byte.Quote) return at > start && body[at - 1] === Byte.Backslash ? -1 : at;
  }
  return -1;
}

/** One past the value's last byte; `end` where that is not reached. */
export function endOfValue(body: Buffer, start: number, end: number): number {
  const first = body[start];
  if (first === Byte.Quote) return Math.min(stringEnd(body, start + 1, end) + 1, end);
  if (first !== Byte.OpenBrace && first !== Byte.OpenBracket) return endOfWord(body, start, end);
  let depth = 0;
  for (let at = start; at < end; at++) {
    const byte = body[at];
    if (byte === Byte.Quote) at = stringEnd(body, at + 1, end);
    else if (byte === Byte.OpenBrace || byte === Byte.OpenBracket) depth++;
    else if (byte === Byte.CloseBrace || byte === Byte.CloseBracket) {
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
    byte === Byte.Comma || byte === Byte.CloseBrace || byte === Byte.CloseBracket || isSpace(byte)
  );
}

/** Where a text, number or word starts that ends before `end`; below `start` for anything else. */
export function startOfValue(body: Buffer, end: number, start: number): number {
  if (body[end - 1] === Byte.Quote) return stringStart(body, end - 1, start);
  let at = end;
  while (at > start && isWordByte(body[at - 1]!)) at--;
  return at === end ? -1 : at;
}

/** Of numbers, true, false and null. */
function isWordByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2e ||
    byte === 0x2b ||
    byte === 0x45
  );
}
