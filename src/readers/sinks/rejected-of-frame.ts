// The lines of one frame that are put aside. What somebody else has put into a stream may have some
// million, each of which would take a hundred times its bytes. So the later ones are put aside as
// one, with all their text.

import { Buffer } from "node:buffer";
import type { RejectedLine } from "./sink-records.ts";

/** So many are put aside each by itself. */
const singleMax = 10_000;

export class RejectedOfFrame {
  readonly #data: Uint8Array;
  #count = 0;
  #first: RejectedLine | undefined;
  #end = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  /** Undefined: it is one of the `rest`. */
  single(line: RejectedLine): RejectedLine | undefined {
    if (++this.#count <= singleMax) return line;
    this.#first ??= line;
    this.#end = this.#startOf(line) + line.text.length;
    return undefined;
  }

  /** In place of the later ones. Its text also has the records that stand between them. */
  rest(): RejectedLine | undefined {
    const first = this.#first;
    const lines = this.#count - singleMax;
    if (first === undefined || lines === 1) return first;
    const { buffer, byteOffset } = this.#data;
    const start = this.#startOf(first);
    const text = Buffer.from(buffer, byteOffset + start, this.#end - start);
    return { ...first, text, detail: `these are ${lines} lines; of the first: ${first.detail}` };
  }

  #startOf({ text }: RejectedLine): number {
    return text.byteOffset - this.#data.byteOffset;
  }
}
