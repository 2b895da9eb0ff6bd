// The bytes of one body that comes in several pieces, in one piece of memory.
// Grows with what has arrived, never on the word of a header alone.

import type { BodyMemory } from "./body-memory.ts";

const GROWTH_ON_HINT = 4;
const GROWTH_WITHOUT_HINT = 2;
const CAPACITY_MIN = 16_384;

/**
 * Bytes to make room for when `needed` have arrived. With a hint (a Content-Length, a gzip trailer): the hint, but
 * at most four times what is there, so that a lie reserves nothing. Without: twice what is there.
 */
export function capacityFor(needed: number, hint: number | undefined): number {
  if (hint !== undefined && hint >= needed) return Math.min(hint, Math.max(needed * GROWTH_ON_HINT, CAPACITY_MIN));
  return Math.max(needed * GROWTH_WITHOUT_HINT, CAPACITY_MIN);
}

export class BodyBuffer {
  length = 0;
  #block: Buffer | undefined;
  readonly #memory: BodyMemory;
  readonly #hint: number | undefined;

  constructor(memory: BodyMemory, hint: number | undefined) {
    this.#memory = memory;
    this.#hint = hint;
  }

  get capacity(): number {
    return this.#block === undefined ? 0 : this.#block.length;
  }

  /** Copies the bytes in: the only copy of a body on its way to the scanner, growth aside. */
  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    const block = needed > this.capacity ? this.#grow(needed) : this.#block;
    block?.set(bytes, this.length);
    this.length = needed;
  }

  /** The body, over this buffer's own memory: not to be read after `free`. */
  bytes(): Buffer {
    return this.#block?.subarray(0, this.length) ?? Buffer.alloc(0);
  }

  /** Gives the memory back. Nothing may still be reading it. */
  free(): void {
    if (this.#block !== undefined) this.#memory.give(this.#block);
    this.#block = undefined;
    this.length = 0;
  }

  #grow(needed: number): Buffer {
    const old = this.#block;
    const block = this.#memory.take(capacityFor(needed, this.#hint));
    if (old !== undefined) {
      block.set(old.subarray(0, this.length));
      this.#memory.give(old);
    }
    this.#block = block;
    return block;
  }
}
