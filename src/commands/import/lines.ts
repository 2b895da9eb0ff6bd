// Splits chunks into lines. If a line is too long, its content is dropped.

import { Buffer } from "node:buffer";
import { Ascii, isJsonSpace } from "../../platform/base/ascii.ts";

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

export interface Line {
  /** The line without surrounding white space. It is empty if the line is too long. */
  readonly bytes: Buffer;
  readonly number: number;
  readonly isTooLong: boolean;
}

export class LineCutter {
  readonly #lineBytesMax: number;
  #number = 0;
  #carried: Buffer[] = [];
  #carriedBytes = 0;

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax;
  }

  *cut(chunk: Buffer): Generator<Line, void, void> {
    let start = 0;
    for (;;) {
      const feed = chunk.indexOf(Ascii.LineFeed, start);
      if (feed < 0) break;
      this.#carry(chunk.subarray(start, feed));
      yield this.#line();
      start = feed + 1;
    }
    this.#carry(chunk.subarray(start));
  }

  last(): Line | undefined {
    return this.#carriedBytes === 0 ? undefined : this.#line();
  }

  #carry(bytes: Buffer): void {
    this.#carriedBytes += bytes.length;
    if (this.#carriedBytes > this.#lineBytesMax) this.#carried = [];
    else this.#carried.push(bytes);
  }

  #line(): Line {
    const [first] = this.#carried;
    const whole = this.#carried.length === 1 ? first! : Buffer.concat(this.#carried);
    const isTooLong = this.#carriedBytes > this.#lineBytesMax;
    this.#carried = [];
    this.#carriedBytes = 0;
    return { bytes: contentOf(whole), number: ++this.#number, isTooLong };
  }
}

function contentOf(line: Buffer): Buffer {
  const hasMark = line.subarray(0, byteOrderMark.length).equals(byteOrderMark);
  let [start, end] = [hasMark ? byteOrderMark.length : 0, line.length];
  while (start < end && isJsonSpace(line[start])) start++;
  while (end > start && isJsonSpace(line[end - 1])) end--;
  const content = line.subarray(start, end);
  return content.includes(Ascii.CarriageReturn) ? withoutReturns(content) : content;
}

/**
 * Replaces carriage returns between tokens by blanks. The scanner does the same, so the hash of a
 * line is the same. Carriage returns in strings are not replaced, because they are invalid JSON.
 */
function withoutReturns(content: Buffer): Buffer {
  const line = Buffer.from(content);
  let isInString = false;
  for (let at = 0; at < line.length; at++) {
    const byte = line[at];
    if (byte === Ascii.Quote) isInString = !isInString;
    else if (byte === Ascii.Backslash && isInString) at++;
    else if (byte === Ascii.CarriageReturn && !isInString) line[at] = Ascii.Space;
  }
  return line;
}
