// What came of the last bytes that were read: lines that came together have the same between their
// values, which then is compared and not read again.

import { Buffer } from "node:buffer";

export class Remembered<Result> {
  readonly #read: (text: string) => Result | undefined;
  #bytes = Buffer.alloc(0);
  #result: Result | undefined;

  constructor(read: (text: string) => Result | undefined) {
    this.#read = read;
  }

  of(text: Buffer, start: number, end: number): Result | undefined {
    if (end <= start) return undefined;
    const bytes = this.#bytes;
    if (end - start !== bytes.length || text.compare(bytes, 0, bytes.length, start, end) !== 0) {
      this.#result = this.#read(text.toString("latin1", start, end));
      this.#bytes = Buffer.from(text.subarray(start, end));
    }
    return this.#result;
  }
}
