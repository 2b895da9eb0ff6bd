// The members of an object, read from the bytes of JSON, within bounds: for answers that say what
// is wrong with it, and for a glance at a body before it is scanned. Keeps no value.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../base/ascii.ts";
import { endOfValue, type Skip, spaceEnd, stringEnd } from "./json-bytes.ts";

export interface ObjectSpan extends Partial<Skip> {
  readonly body: Buffer;
  readonly start: number;
  readonly end: number;
}

/** Where a member's name is, without its quotes, and where its value. */
export interface MemberSpan {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

export interface Member {
  /** As it is written: of printable ASCII, without escapes. */
  readonly name: string;
  /** Where its value begins. */
  readonly valueAt: number;
}

const bytesReadMax = 4_096;
const membersMax = 64;
/** No name that is looked for has as many characters, nor one that comes near it. */
export const nameBytesMax = 32;

const plainName = /^[!-[\]-~]+$/;

/**
 * Hands on the members of the object that begins at `start`, until `take` answers false. The value
 * of the last may be cut off. Answers one past the object's last byte, or -1 where that is not
 * reached.
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

/** The first members of the object; none where the span does not begin with one. */
export function membersOf({ body, start, end, skipFrom = -1, skipTo = -1 }: ObjectSpan): Member[] {
  const members: Member[] = [];
  // What is skipped is not read, so it does not count.
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
