// Handles malformed UTF-8 for the reference scanner: counts the malformed sequences, and writes the
// text with U+FFFD in their places, as TextDecoder does. It must share nothing with the addon.

import { isUtf8 } from "node:buffer";

const replacement = Buffer.from("\ufffd");

/**
 * The length of the piece that begins at `at`: a well-formed sequence, or malformed bytes that are
 * replaced by one U+FFFD.
 */
function pieceAt(body: Buffer, at: number): { length: number; wellFormed: boolean } {
  const lead = body[at]!;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (at + length <= body.length && isUtf8(body.subarray(at, at + length)))
    return { length, wellFormed: true };
  // A malformed piece is the longest beginning that some continuation would make well-formed.
  for (let begun = Math.min(length, body.length - at + 1) - 1; begun > 1; begun--) {
    const rest = length - begun;
    for (const filler of [0x80, 0x90, 0xa0, 0xbf]) {
      if (isUtf8(Buffer.concat([body.subarray(at, at + begun), Buffer.alloc(rest, filler)])))
        return { length: begun, wellFormed: false };
    }
  }
  return { length: 1, wellFormed: false };
}

/**
 * The values of Header.Malformed and Header.RepairedBytes. Both are 0 where there are more than
 * `most` malformed sequences.
 */
export function countMalformed(body: Buffer, most: number): { malformed: number; bytes: number } {
  let malformed = 0;
  let bytes = 0;
  for (let at = 0; at < body.length; ) {
    const { length, wellFormed } = pieceAt(body, at);
    at += length;
    bytes += wellFormed ? length : replacement.length;
    if (!wellFormed) malformed++;
    if (malformed > most) return { malformed: 0, bytes: 0 };
  }
  return { malformed, bytes };
}

/** Does what Scanner.repair says in table.ts. */
export function repairMalformed(
  body: Buffer,
  until: number,
  { text, places, progress }: { text: Buffer; places: Uint32Array; progress: Uint32Array },
): void {
  let [read, written, malformed] = progress as unknown as [number, number, number];
  while (read < until) {
    const { length, wellFormed } = pieceAt(body, read);
    if (!wellFormed) places[malformed++] = written;
    written += wellFormed
      ? body.copy(text, written, read, read + length)
      : replacement.copy(text, written);
    read += length;
  }
  progress.set([read, written, malformed]);
}
