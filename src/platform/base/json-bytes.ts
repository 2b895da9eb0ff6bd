// Finds JSON tokens and members in bytes. If the JSON is invalid, the results are meaningless. But
// they are always within the given bounds, and the time is linear.

import type { Buffer } from "node:buffer";
import { Ascii, isJsonSpace, stringEnd } from "./ascii.ts";

export function spaceEnd(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isJsonSpace(body[at])) at++;
  return at;
}

export function spaceStart(body: Buffer, end: number, start: number): number {
  let at = end;
  while (at > start && isJsonSpace(body[at - 1])) at--;
  return at;
}

/**
 * Returns the start of a string. `closing` is the offset of its closing quote. Returns -1 if the
 * string has escapes, or if it is not a string.
 */
export function stringStart(body: Buffer, closing: number, start: number): number {
  if (closing <= start || body[closing] !== Ascii.Quote) return -1;
  for (let at = closing - 1; at >= start; at--) {
    if (body[at] === Ascii.Backslash) return -1;
    if (body[at] === Ascii.Quote) return at > start && body[at - 1] === Ascii.Backslash ? -1 : at;
  }
  return -1;
}

interface Skip {
  readonly skipFrom: number;
  readonly skipTo: number;
}

const nothingSkipped: Skip = { skipFrom: -1, skipTo: -1 };

/** Returns the offset after the value that begins at `start`. The result is at most `end`. */
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

/** Returns the start of the string, number or literal that ends at `end`, or -1. */
export function startOfValue(body: Buffer, end: number, start: number): number {
  if (body[end - 1] === Ascii.Quote) return stringStart(body, end - 1, start);
  let at = end;
  while (at > start && isWordByte(body[at - 1]!)) at--;
  return at === end ? -1 : at;
}

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

export interface ObjectSpan extends Partial<Skip> {
  readonly body: Buffer;
  readonly start: number;
  readonly end: number;
}

export interface MemberSpan {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

export interface Member {
  readonly name: string;
  readonly valueAt: number;
}

const bytesReadMax = 4_096;
const membersMax = 64;
const nameBytesMax = 32;

const plainName = /^[!-[\]-~]+$/;

/**
 * Calls `take` for each member until it returns false. Returns the offset after the object. Returns
 * -1 if the end of the object was not reached. In that case, the last value may be incomplete.
 */
export function walkMembers(
  { body, start, end, skipFrom = -1, skipTo = -1 }: ObjectSpan,
  take: (member: MemberSpan) => boolean,
): number {
  const skip = { skipFrom, skipTo };
  let at = spaceEnd(body, start + 1, end);
  while (at < end && body[at] === Ascii.Quote) {
    const nameStart = at + 1;
    const nameEnd = stringEnd(body, nameStart, end);
    at = spaceEnd(body, nameEnd + 1, end);
    if (at >= end || body[at] !== Ascii.Colon) return -1;
    const valueStart = spaceEnd(body, at + 1, end);
    const valueEnd = endOfValue(body, valueStart, end, skip);
    if (!take({ nameStart, nameEnd, valueStart, valueEnd })) return -1;
    at = spaceEnd(body, valueEnd, end);
    if (at < end && body[at] === Ascii.CloseBrace) return at + 1;
    if (at >= end || body[at] !== Ascii.Comma) return -1;
    at = spaceEnd(body, at + 1, end);
  }
  return at < end && body[at] === Ascii.CloseBrace ? at + 1 : -1;
}

/** Returns the members in the object's first 4 KiB, except those with long or escaped names. */
export function membersOf({ body, start, end, skipFrom = -1, skipTo = -1 }: ObjectSpan): Member[] {
  const members: Member[] = [];
  const isSkipping = skipFrom >= start && skipFrom < start + bytesReadMax;
  const limit = Math.min(end, start + bytesReadMax + (isSkipping ? skipTo - skipFrom : 0));
  const objectStart = spaceEnd(body, start, limit);
  if (body[objectStart] !== Ascii.OpenBrace) return members;
  let count = 0;
  const walked = { body, start: objectStart, end: limit, skipFrom, skipTo };
  walkMembers(walked, ({ nameStart, nameEnd, valueStart }) => {
    if (valueStart >= limit) return false;
    if (nameEnd > nameStart && nameEnd - nameStart <= nameBytesMax) {
      const name = body.toString("latin1", nameStart, nameEnd);
      if (plainName.test(name)) members.push({ name, valueAt: valueStart });
    }
    return ++count < membersMax;
  });
  return members;
}
