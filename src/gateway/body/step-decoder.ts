// Decodes percent-encoding and base64 on the event loop, one piece at a time. Both decoders
// overwrite their input, which is never shorter than the result. A piece takes some tenths of a
// millisecond.

import { Ascii, hexValues } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import type { BodyBuffer } from "./body-buffer.ts";
import { invalidEncoding } from "./body-problems.ts";

export interface StepDecoder {
  readonly bytesLeft: number;
  /**
   * Returns undefined until the decoding ends. A `Buffer` is in the decoder's input. A `BodyBuffer`
   * belongs to the caller.
   */
  step(): Buffer | BodyBuffer | Problem | undefined;
  begun(): Buffer;
  free(): void;
}

/** A multiple of four, because base64 has groups of four. */
const STEP_BYTES = 131_072;

const PERCENT = 0x25;

/** A `%` without two hexadecimal digits is literal. */
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

/** Decodes base64 of both alphabets. A space counts as a plus sign, as in a form. */
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
    // Node skips characters outside of the alphabet, and then writes fewer bytes.
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

/** Removes line breaks and restores plus signs in place. Returns the new end. */
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
