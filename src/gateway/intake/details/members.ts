// Reads the members of an object from the bytes of JSON, within bounds. For answers that say what
// is wrong with the object, and for a look into a body before it is scanned. Keeps no value.

import type { Buffer } from "node:buffer";
import { Ascii, stringEnd } from "../../../platform/base/ascii.ts";
import { endOfValue, type Skip, spaceEnd } from "./json-bytes.ts";

export interface ObjectSpan extends Partial<Skip> {
  readonly body: Buffer;
  readonly start: number;
  readonly end: number;
}

/** The spans of a member's name, without its quotes, and of its value. */
export interface MemberSpan {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

export interface Member {
  /** As the body has it: printable ASCII, without escapes. */
  readonly name: string;
  /** Where its value begins. */
  readonly valueAt: number;
}

const bytesReadMax = 4_096;
const membersMax = 64;
/** A longer name is left out: it is none that is looked for, and near none. */
const nameBytesMax = 32;

const plainName = /^[!-[\]-~]+$/;

/**
 * Calls `take` with each member of the object that begins at `start`, until `take` returns false.
 * The value of the last member may be cut off at `end`. Returns one past the last byte of the
 * object, or -1 where the walk did not get to its end.
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

/**
 * The first members of the object, at most 64 from its first 4 KiB; none where the span does not
 * begin with an object. Members whose names are longer than `nameBytesMax` or not plain are left
 * out.
 */
export function membersOf({ body, start, end, skipFrom = -1, skipTo = -1 }: ObjectSpan): Member[] {
  const members: Member[] = [];
  // Bytes that are skipped are not read, so they do not count towards the limit.
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
