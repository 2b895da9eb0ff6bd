// Replacements in a text, which is then written once. The memory is reused.

import type { Buffer } from "node:buffer";

const editsAtFirst = 256;

export class TextEdits {
  #starts = new Uint32Array(editsAtFirst);
  #ends = new Uint32Array(editsAtFirst);
  readonly #texts: string[] = [];
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
    if (count > 0 && start < this.#starts[count - 1]!) this.#isSorted = false;
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
    const order = new Uint32Array(this.#count);
    for (let index = 0; index < order.length; index++) order[index] = index;
    const [starts, ends] = [this.#starts, this.#ends];
    return order.sort(
      (one, other) => starts[one]! - starts[other]! || ends[one]! - ends[other]! || one - other,
    );
  }

  #grow(): void {
    const [starts, ends] = [this.#starts, this.#ends];
    this.#starts = new Uint32Array(2 * starts.length);
    this.#ends = new Uint32Array(2 * ends.length);
    this.#starts.set(starts);
    this.#ends.set(ends);
  }
}
