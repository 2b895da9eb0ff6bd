// The beginning of a JSON token as text. A token may be as long as its body; whatever is read of it
// to judge an event is in its first 4 KiB, so that no client decides how long a string this process
// makes.

import type { Buffer } from "node:buffer";
import { Ascii } from "../base/ascii.ts";

/**
 * How much is read of a string, or of a value that stands for one: twenty times what any rule
 * asks for.
 */
export const tokenBytesRead = 4_096;

const LETTER_U = 0x75;

/**
 * The text of the string token body[start, end), quotes included, or of as many whole characters of
 * it as are read.
 */
export function stringBeginning(body: Buffer, start: number, end: number): string {
  if (end - start <= tokenBytesRead) return JSON.parse(body.toString("utf8", start, end)) as string;
  return JSON.parse(`${body.toString("utf8", start, wholeEscapesEnd(body, start + 1))}"`) as string;
}

/**
 * Where the last character or escape ends that lies in the bytes read. A surrogate pair written as
 * two escapes may be parted.
 */
function wholeEscapesEnd(body: Buffer, start: number): number {
  const limit = start + tokenBytesRead - 2;
  let at = start;
  for (let next = at; next <= limit; next += stepAt(body, next)) at = next;
  return at;
}

function stepAt(body: Buffer, at: number): number {
  const byte = body[at]!;
  if (byte === Ascii.Backslash) return body[at + 1] === LETTER_U ? 6 : 2;
  return sequenceBytes(byte);
}

/** Bytes of the well-formed UTF-8 sequence that begins with this one. */
export function sequenceBytes(lead: number): number {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}
