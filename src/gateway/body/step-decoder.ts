// Decodes percent-encoding and base64 on the event loop, one piece at a time. The result is never
// longer than the input, so both decoders overwrite their input. Decoding a piece takes a few
// tenths of a millisecond.

import { Ascii, hexValues } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import type { BodyBuffer } from "./body-buffer.ts";
import { invalidEncoding } from "./body-problems.ts";

export interface StepDecoder {
  readonly bytesLeft: number;
  /**
   * Returns undefined until the decoding is complete. If the result is a `Buffer`, its memory is
   * the decoder's input. If it is a `BodyBuffer`, the caller owns it.
   */
  step(): Buffer | BodyBuffer | Problem | undefined;
  begun(): Buffer;
  free(): void;
}

/** The size is a multiple of four, because base64 has groups of four characters. */
const STEP_BYTES = 131_072;

const PERCENT = 0x25;

/** Decodes percent-encoding. A `%` without two hexadecimal digits stays unchanged. */
export class PercentDecoder implements StepDecoder {
  readonly #bytes: Buffer;
  readonly #end: number;
  #read: number;
  #written = 0;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.#read = start;
    this.#end = end;
  }

  get bytesLeft(): number {
    return this.#end - this.#read;
  }

  step(): Buffer | undefined {
    const bytes = this.#bytes;
    const end = this.#end;
    const stepEnd = Math.min(end, this.#read + STEP_BYTES);
    let read = this.#read;
    let written = this.#written;
    while (read < stepEnd) {
      const byte = bytes[read++]!;
      if (byte === Ascii.Plus) bytes[written++] = Ascii.Space;
      else if (byte !== PERCENT) bytes[written++] = byte;
      else {
        const value =
          read + 2 <= end ? (hexValues[bytes[read]!]! << 4) | hexValues[bytes[read + 1]!]! : -1;
        bytes[written++] = value < 0 ? PERCENT : value;
        if (value >= 0) read += 2;
      }
    }
    this.#read = read;
    this.#written = written;
    return read >= end ? this.begun() : undefined;
  }

  begun(): Buffer {
    return this.#bytes.subarray(0, this.#written);
  }

  free(): void {}
}

/**
 * Decodes base64 of both alphabets. A space counts as a plus sign, because form decoding replaces
 * plus signs by spaces.
 */
export class Base64Decoder implements StepDecoder {
  readonly #bytes: Buffer;
  readonly #end: number;
  #read = 0;
  #written = 0;
  #carry = "";

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    let end = bytes.length;
    while (end > 0 && bytes.length - end < 4 && isLineBreak(bytes[end - 1]!)) end--;
    this.#end = end;
  }

  get bytesLeft(): number {
    return this.#end - this.#read;
  }

  step(): Buffer | Problem | undefined {
    const isLast = this.#end - this.#read <= STEP_BYTES;
    const stepEnd = isLast ? this.#end : this.#read + STEP_BYTES;
    const plainEnd = plainBase64(this.#bytes, this.#read, stepEnd);
    const text = this.#carry + this.#bytes.toString("latin1", this.#read, plainEnd);
    const whole = text.length - (isLast ? 0 : text.length % 4);
    this.#carry = text.slice(whole);
    this.#read = stepEnd;
    const group = isLast ? text.replace(/={1,2}$/, "") : text.slice(0, whole);
    // Node skips characters that are not base64. Fewer bytes than expected mean that the text has
    // such characters.
    const written = this.#bytes.write(group, this.#written, "base64");
    if (group.length % 4 === 1 || written !== Math.floor((group.length * 3) / 4)) return notBase64;
    this.#written += written;
    return isLast ? this.begun() : undefined;
  }

  begun(): Buffer {
    return this.#bytes.subarray(0, this.#written);
  }

  free(): void {}
}

/** Removes line breaks and restores plus signs in place. Returns the new end of the text. */
export function plainBase64(bytes: Buffer, start: number, end: number): number {
  const text = bytes.subarray(start, end);
  const hasBreaks = text.includes(Ascii.LineFeed);
  if (!hasBreaks && !text.includes(Ascii.Space)) return end;
  let written = start;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (hasBreaks && isLineBreak(byte)) continue;
    bytes[written++] = byte === Ascii.Space ? Ascii.Plus : byte;
  }
  return written;
}

function isLineBreak(byte: number): boolean {
  return byte === Ascii.LineFeed || byte === Ascii.CarriageReturn;
}

const notBase64 = invalidEncoding(
  "base64",
  "it is truncated, or has a character that is not base64",
);
