// Inflates small gzip and deflate bodies in the addon, all into the same memory. node:zlib creates
// a stream, a decoder and an output for each body, which takes 10 to 15 µs. They also leave garbage
// outside of the heap: in a flood of small bodies it makes V8 stop for 5 to 15 ms several times a
// second. A body that does not inflate here goes to node:zlib, which reports the error.

import { Buffer } from "node:buffer";
import { type Coding, hasZlibHeader } from "./codings.ts";
import { atOnceBytesMax, atOnceInflatedBytesMax, sizeHint } from "./inflate.ts";

/** The addon's inflater. One thread owns it. */
export interface QuickInflater {
  /**
   * Inflates the whole body to the start of `output` and returns the number of bytes. Returns -1 if
   * the body is invalid, continues after its end, or does not fit. `windowBits` is as in zlib.h.
   */
  inflate(body: Uint8Array, output: Uint8Array, windowBits: number): number;
}

/**
 * Window bits of zlib.h for a window of 32 KiB. For gzip, `gzipBits` are added. For deflate without
 * a header, the number is negative.
 */
const windowBitsMax = 15;
const gzipBits = 16;

export class QuickInflation {
  readonly #inflater: QuickInflater;
  readonly #output: Buffer;

  /** Creates an inflation; `bytesMax` is the maximum inflated size of any body. */
  constructor(inflater: QuickInflater, bytesMax: number) {
    this.#inflater = inflater;
    this.#output = Buffer.allocUnsafeSlow(Math.min(bytesMax, atOnceInflatedBytesMax));
  }

  /**
   * Returns the inflated body, in memory that is valid until the next call. Returns undefined if
   * the body is not suitable or is invalid. `compressed` is only read during the call.
   */
  inflated(coding: Coding, compressed: Uint8Array): Buffer | undefined {
    if (compressed.length > atOnceBytesMax || (coding !== "gzip" && coding !== "deflate"))
      return undefined;
    if ((sizeHint(coding, compressed) ?? 0) > this.#output.length) return undefined;
    const bytes = this.#inflater.inflate(
      compressed,
      this.#output,
      windowBitsOf(coding, compressed),
    );
    return bytes < 0 ? undefined : this.#output.subarray(0, bytes);
  }
}

function windowBitsOf(coding: Coding, compressed: Uint8Array): number {
  if (coding === "gzip") return windowBitsMax + gzipBits;
  return hasZlibHeader(compressed) ? windowBitsMax : -windowBitsMax;
}
