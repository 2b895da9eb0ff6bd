// The names of an object's members, read from the bytes of valid JSON for answers that say what is
// wrong with it. Reads a bounded part, passes over what it is told to, and keeps no value.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../base/ascii.ts";

export interface ObjectSpan {
  readonly body: Buffer;
  readonly start: number;
  readonly end: number;
  /** A whole value, or several, inside the span: passed over unread, however long. */
  readonly skipFrom?: number;
  readonly skipTo?: number;
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

/** The first members of the object; none where the span does not begin with one. */
export function membersOf({ body, start, end, skipFrom = -1, skipTo = -1 }: ObjectSpan): Member[] {
  const members: Member[] = [];
  let limit = Math.min(end, start + bytesReadMax);
  let at = start;
  passSpace();
  if (body[at] !== Ascii.OpenBrace) return members;
  at++;
  for (let count = 0; count < membersMax; count++) {
    passSpace();
    if (at >= limit || body[at] !== Ascii.Quote) break;
    const nameStart = at + 1;
    passString();
    const nameEnd = at - 1;
    passSpace();
    at++;
    passSpace();
    if (at >= limit) break;
    if (nameEnd > nameStart && nameEnd - nameStart <= nameBytesMax) {
      const name = body.toString("latin1", nameStart, nameEnd);
      if (plainName.test(name)) members.push({ name, valueAt: at });
    }
    passValue();
    passSpace();
    if (at >= limit || body[at] !== Ascii.Comma) break;
    at++;
  }
  return members;

  function passSpace(): void {
    while (at < limit && body[at]! <= 0x20) at++;
  }

  /** From the opening quote to behind the closing one. */
  function passString(): void {
    at++;
    while (at < limit && body[at] !== Ascii.Quote) at += body[at] === Ascii.Backslash ? 2 : 1;
    at++;
  }

  function passValue(): void {
    let depth = 0;
    while (at < limit) {
      if (at === skipFrom) {
        limit = Math.min(end, limit + skipTo - skipFrom);
        at = skipTo;
        if (depth === 0) return;
      }
      const byte = body[at];
      if (byte === Ascii.Quote) {
        passString();
        if (depth === 0) return;
        continue;
      }
      if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) depth++;
      else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) {
        // The end of the object itself, behind a number or a word.
        if (depth === 0) return;
        depth--;
        if (depth === 0) {
          at++;
          return;
        }
      } else if (byte === Ascii.Comma && depth === 0) return;
      at++;
    }
  }
}
