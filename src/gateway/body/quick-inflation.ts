import { Buffer } from "node:buffer";
import { type Coding, hasZlibHeader } from "./codings.ts";
import { atOnceBytesMax, atOnceInflatedBytesMax, sizeHint } from "./inflate.ts";

export interface QuickInflater {
  /**
   * Inflates the whole body into `output` and returns the number of bytes. Returns -1 if the body
   * is invalid, continues after its end, or does not fit. `windowBits` is as in zlib.h.
   */
  inflate(body: Uint8Array, output: Uint8Array, windowBits: number): number;
}

/** Window bits of zlib.h: `gzipBits` are added for gzip; deflate without a header is negative. */
const windowBitsMax = 15;
const gzipBits = 16;

export class QuickInflation {
  readonly #inflater: QuickInflater;
  readonly #output: Buffer;

  constructor(inflater: QuickInflater, bytesMax: number) {
    this.#inflater = inflater;
    this.#output = Buffer.allocUnsafeSlow(Math.min(bytesMax, atOnceInflatedBytesMax));
  }

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
