// Reads the beginning of a JSON token as text. A token may be as long as its body. The rules for
// events need only its first 4 KiB, so no client decides how long a string this process makes.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";

/** Bytes read of a string, or of a value that stands for one: twenty times what any rule needs. */
export const tokenBytesRead = 4_096;

const LETTER_U = 0x75;

/**
 * The text of the string token body[start, end), quotes included. Of a token longer than
 * `bytesMax`, the text of the whole characters in that many bytes.
 */
export function stringBeginning(
  body: Buffer,
  start: number,
  end: number,
  bytesMax: number = tokenBytesRead,
): string {
  if (end - start <= bytesMax) return JSON.parse(body.toString("utf8", start, end)) as string;
  const readEnd = wholeEscapesEnd(body, start + 1, start + bytesMax - 1);
  return JSON.parse(`${body.toString("utf8", start, readEnd)}"`) as string;
}

/**
 * Where the last character or escape ends that is whole before `limit`. Of a surrogate pair
 * written as two escapes, the second half may be cut off.
 */
function wholeEscapesEnd(body: Buffer, start: number, limit: number): number {
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
