// Malformed UTF-8 for the reference scanner: how much of it there is, and the same text with U+FFFD
// in its place, as TextDecoder has it. It must share nothing with the addon.

import { isUtf8 } from "node:buffer";

const replacement = Buffer.from("\ufffd");

/** Bytes of what begins at `at`: a sequence, or what is to be replaced as one. */
function pieceAt(body: Buffer, at: number): { length: number; wellFormed: boolean } {
  const lead = body[at]!;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (at + length <= body.length && isUtf8(body.subarray(at, at + length)))
    return { length, wellFormed: true };
  // The longest beginning that some continuation makes a sequence of.
  for (let begun = Math.min(length, body.length - at + 1) - 1; begun > 1; begun--) {
    const rest = length - begun;
    for (const filler of [0x80, 0x90, 0xa0, 0xbf]) {
      if (isUtf8(Buffer.concat([body.subarray(at, at + begun), Buffer.alloc(rest, filler)])))
        return { length: begun, wellFormed: false };
    }
  }
  return { length: 1, wellFormed: false };
}

/** As the table's Header.Malformed and Header.RepairedBytes. */
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

/** As Scanner.repair. */
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
