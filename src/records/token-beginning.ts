// Reads the beginning of a JSON token as text. The length is limited, so that a client cannot cause
// long strings.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";

export const tokenBytesRead = 4_096;

const LETTER_U = 0x75;

/** Returns all complete characters in the first `bytesMax` bytes of a quoted string. */
export function stringBeginning(
  body: Buffer,
  start: number,
  end: number,
  bytesMax: number = tokenBytesRead,
): string {
  const isWhole = end - start <= bytesMax;
  const readEnd = isWhole ? end - 1 : wholeEscapesEnd(body, start + 1, start + bytesMax - 1);
  const text = body.toString("utf8", start + 1, readEnd);
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}

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

export function sequenceBytes(lead: number): number {
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}
