// Replacements in a text, which is then written once. The memory is reused.

import type { Buffer } from "node:buffer";

const editsAtFirst = 256;
/** Maximum number of edits that are sorted by insertion, which is faster for few edits. */
const insertedMax = 32;

export class TextEdits {
  #starts = new Uint32Array(editsAtFirst);
  #ends = new Uint32Array(editsAtFirst);
  readonly #texts: string[] = [];
  #places = new Uint32Array(editsAtFirst);
  #count = 0;
  #isSorted = true;
  /** Maximum number of bytes by which the edits make the text longer. */
  growthMax = 0;

  clear(): void {
    this.#count = 0;
    this.#isSorted = true;
    this.growthMax = 0;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Replaces [start, end). Edits inside of an earlier edit are ignored. */
  replace(start: number, end: number, text: string): void {
    const count = this.#count++;
    if (count === this.#starts.length) this.#grow();
    if (count > 0) {
      const order = start - this.#starts[count - 1]! || end - this.#ends[count - 1]!;
      if (order < 0) this.#isSorted = false;
    }
    this.#starts[count] = start;
    this.#ends[count] = end;
    this.#texts[count] = text;
    this.growthMax += 3 * text.length;
  }

  /** Writes body[start, end) with the edits to the target at `at`. Returns the end. */
  write(body: Buffer, start: number, end: number, target: Buffer, at: number): number {
    const order = this.#isSorted ? undefined : this.#order();
    let read = start;
    let written = at;
    for (let place = 0; place < this.#count; place++) {
      const index = order === undefined ? place : order[place]!;
      const editStart = this.#starts[index]!;
      if (editStart < read) continue;
      if (editStart > read) written += body.copy(target, written, read, editStart);
      const text = this.#texts[index]!;
      if (text !== "") written += target.write(text, written, "utf8");
      read = this.#ends[index]!;
    }
    return written + body.copy(target, written, read, end);
  }

  /** Returns the edits in the order of the text. An insertion precedes an edit at its offset. */
  #order(): Uint32Array {
    const count = this.#count;
    if (count > this.#places.length) this.#places = new Uint32Array(2 * count);
    const places = this.#places;
    for (let index = 0; index < count; index++) {
      let at = index;
      if (count <= insertedMax)
        for (; at > 0 && this.#compare(places[at - 1]!, index) > 0; at--)
          places[at] = places[at - 1]!;
      places[at] = index;
    }
    if (count > insertedMax)
      places.subarray(0, count).sort((one, other) => this.#compare(one, other));
    return places;
  }

  #compare(one: number, other: number): number {
    const [starts, ends] = [this.#starts, this.#ends];
    return starts[one]! - starts[other]! || ends[one]! - ends[other]! || one - other;
  }

  #grow(): void {
    const [starts, ends] = [this.#starts, this.#ends];
    this.#starts = new Uint32Array(2 * starts.length);
    this.#ends = new Uint32Array(2 * ends.length);
    this.#starts.set(starts);
    this.#ends.set(ends);
  }
}
