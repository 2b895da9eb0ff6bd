// Splits chunks into lines, without those that are too long. Holds the beginning of one line.

import { Ascii, isJsonSpace } from "../../platform/base/ascii.ts";

const noBytes: Buffer = Buffer.alloc(0);
/**
 * Some editors write U+FEFF at the beginning of a text. Concatenated files also contain it in the
 * middle.
 */
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

export class LineCutter {
  readonly #lineBytesMax: number;
  #chunk = noBytes;
  #at = 0;
  #carried: Buffer[] = [];
  #carriedBytes = 0;
  #isPassingOver = false;

  // The line that `next` has found, without surrounding white space. Valid until the next call.
  bytes: Buffer = noBytes;
  start = 0;
  end = 0;
  number = 0;
  /** Whether the line exceeds the limit. Its bytes are then not available. */
  isTooLong = false;

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax;
  }

  /** Must be called only after `next` has returned false. */
  push(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#at = 0;
  }

  /** Finds the next line, which may be empty. Returns false if it needs the next chunk. */
  next(): boolean {
    const feed = this.#chunk.indexOf(Ascii.LineFeed, this.#at);
    if (feed < 0) {
      this.#carry(this.#chunk.length);
      return false;
    }
    const from = this.#at;
    this.#at = feed + 1;
    if (this.#carriedBytes === 0 && !this.#isPassingOver && feed - from <= this.#lineBytesMax) {
      this.#found(this.#chunk, from, feed);
    } else {
      this.#at = from;
      this.#carry(feed);
      this.#at = feed + 1;
      this.#foundCarried();
    }
    return true;
  }

  /** Finds a last line without a line feed. Returns whether there is one. */
  last(): boolean {
    if (this.#carriedBytes === 0 && !this.#isPassingOver) return false;
    this.#foundCarried();
    return true;
  }

  #carry(until: number): void {
    const bytes = until - this.#at;
    if (this.#isPassingOver || this.#carriedBytes + bytes > this.#lineBytesMax) {
      this.#isPassingOver = true;
      this.#carried = [];
      this.#carriedBytes = 0;
    } else if (bytes > 0) {
      // Copied, because the reader of the next chunk may reuse the memory.
      this.#carried.push(Buffer.from(this.#chunk.subarray(this.#at, until)));
      this.#carriedBytes += bytes;
    }
    this.#at = until;
  }

  #foundCarried(): void {
    const isTooLong = this.#isPassingOver;
    const line = isTooLong ? noBytes : Buffer.concat(this.#carried, this.#carriedBytes);
    this.#carried = [];
    this.#carriedBytes = 0;
    this.#isPassingOver = false;
    this.#found(line, 0, line.length);
    this.isTooLong = isTooLong;
  }

  #found(bytes: Buffer, start: number, end: number): void {
    this.number++;
    const { length } = byteOrderMark;
    const hasMark =
      bytes[start] === byteOrderMark[0] &&
      bytes.compare(byteOrderMark, 0, length, start, Math.min(start + length, end)) === 0;
    let [from, until] = [hasMark ? start + length : start, end];
    while (from < until && isJsonSpace(bytes[from])) from++;
    while (until > from && isJsonSpace(bytes[until - 1])) until--;
    this.bytes = bytes;
    this.start = from;
    this.end = until;
    this.isTooLong = false;
  }
}
