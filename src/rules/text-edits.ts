// Replacements in a text, which is then written once.

import type { Buffer } from "node:buffer";

export class TextEdits {
  #starts: number[] = [];
  #ends: number[] = [];
  #texts: string[] = [];
  #isSorted = true;
  #lastStart = 0;
  /** Maximum number of bytes by which the edits make the text longer. */
  growthMax = 0;

  clear(): void {
    this.#starts.length = 0;
    this.#ends.length = 0;
    this.#texts.length = 0;
    this.#isSorted = true;
    this.#lastStart = 0;
    this.growthMax = 0;
  }

  get isEmpty(): boolean {
    return this.#starts.length === 0;
  }

  /** Replaces [start, end). Edits inside of an earlier edit are ignored. */
  replace(start: number, end: number, text: string): void {
    if (start < this.#lastStart) this.#isSorted = false;
    this.#lastStart = start;
    this.#starts.push(start);
    this.#ends.push(end);
    this.#texts.push(text);
    this.growthMax += 3 * text.length;
  }

  /** Writes body[start, end) with the edits to the target at `at`. Returns the end. */
  write(body: Buffer, { start, end }: { start: number; end: number }, target: Buffer, at: number) {
    let read = start;
    let written = at;
    for (const index of this.#order()) {
      const editStart = this.#starts[index]!;
      if (editStart < read) continue;
      written += body.copy(target, written, read, editStart);
      const text = this.#texts[index]!;
      if (text !== "") written += target.write(text, written, "utf8");
      read = this.#ends[index]!;
    }
    return written + body.copy(target, written, read, end);
  }

  /** An insertion precedes an edit at the same offset. */
  #order(): Iterable<number> {
    const order = this.#starts.keys();
    if (this.#isSorted) return order;
    return [...order].sort(
      (one, other) =>
        this.#starts[one]! - this.#starts[other]! || this.#ends[one]! - this.#ends[other]!,
    );
  }
}
