// The bytes of one body that comes in several pieces. Grows with what has arrived, never on the
// word of a header alone. Small bodies grow by being copied; a large one goes on in another block,
// and is put together in one piece when it is whole, over several turns of the event loop: to copy
// 64 MiB takes a tenth of a second.

import type { BodyMemory } from "./body-memory.ts";

const GROWTH_ON_HINT = 4;
const GROWTH_WITHOUT_HINT = 2;
const CAPACITY_MIN = 16_384;
/** No more than this is copied for growth: it takes a millisecond or two. */
const COPIED_BYTES_MAX = 4_194_304;
/**
 * From here on one growth takes a body of the default cap to its end. What is reserved so, 16 MiB
 * for 1 that is here, is not touched.
 */
const LARGE_BYTES = 1_048_576;
const GROWTH_ON_HINT_LARGE = 16;
/** A block that goes on where another is full has so many bytes at most. */
const NEXT_BLOCK_BYTES_MAX = 33_554_432;
/**
 * So many bytes are copied in a turn of the event loop when a body is put together: with the page
 * faults, it takes some 2 ms.
 */
const gatheredBytesPerTurn = 4_194_304;

/**
 * Says how many bytes to make room for when `needed` have arrived. With a hint (a Content-Length, a
 * gzip trailer) it is the hint, but at most some times what is there, so that a lie reserves
 * nothing. Without one it is twice what is there.
 */
export function capacityFor(needed: number, hint: number | undefined): number {
  const growth = needed < LARGE_BYTES ? GROWTH_ON_HINT : GROWTH_ON_HINT_LARGE;
  if (hint !== undefined && hint >= needed)
    return Math.min(hint, Math.max(needed * growth, CAPACITY_MIN));
  return Math.max(needed * GROWTH_WITHOUT_HINT, CAPACITY_MIN);
}

export class BodyBuffer {
  length = 0;
  /** Full blocks, which stand before the one that is written. */
  #full: Buffer[] = [];
  #fullBytes = 0;
  #block: Buffer | undefined;
  readonly #memory: BodyMemory;
  readonly #hint: number | undefined;

  constructor(memory: BodyMemory, hint: number | undefined) {
    this.#memory = memory;
    this.#hint = hint;
  }

  /** Takes over a block that has the body in its first `length` bytes. */
  static of(memory: BodyMemory, block: Buffer, length: number): BodyBuffer {
    const buffer = new BodyBuffer(memory, undefined);
    buffer.#block = block;
    buffer.length = length;
    return buffer;
  }

  /** Cuts a body in one piece to its first bytes. */
  shorten(length: number): void {
    this.length = Math.min(this.length, length);
  }

  get capacity(): number {
    return this.#fullBytes + (this.#block === undefined ? 0 : this.#block.length);
  }

  /** Where it is not, `gather` comes before `bytes`. */
  get isInOnePiece(): boolean {
    return this.#full.length === 0;
  }

  /** Copies the bytes in: the only copy of a small body on its way to the scanner, growth aside. */
  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    if (needed > this.capacity) this.#grow(needed, bytes);
    else this.#block?.set(bytes, this.length - this.#fullBytes);
    this.length = needed;
  }

  /** Returns the body in this buffer's own memory: not to be read after `free`. */
  bytes(): Buffer {
    if (!this.isInOnePiece) throw new Error("Read a body: it lies in several pieces");
    return this.#block?.subarray(0, this.length) ?? Buffer.alloc(0);
  }

  /**
   * Puts the body together in one piece, if it is in several. Nothing else is to be called before
   * it is fulfilled.
   */
  async gather(nextTurn: () => Promise<void>): Promise<void> {
    if (this.isInOnePiece) return;
    const whole = this.#memory.take(this.length);
    let at = 0;
    for (const block of [...this.#full, this.#block!.subarray(0, this.length - this.#fullBytes)]) {
      for (let start = 0; start < block.length; start += gatheredBytesPerTurn) {
        whole.set(block.subarray(start, start + gatheredBytesPerTurn), at + start);
        await nextTurn();
      }
      at += block.length;
      // Many bodies may be put together at a time, so no block is twice in memory for long.
      if (this.#full[0] === block) this.#memory.give(this.#full.shift()!);
    }
    this.#memory.give(this.#block!);
    this.#fullBytes = 0;
    this.#block = whole;
  }

  /** Gives the memory back. Nothing may still be reading it. */
  free(): void {
    for (const block of this.#full) this.#memory.give(block);
    if (this.#block !== undefined) this.#memory.give(this.#block);
    this.#full = [];
    this.#fullBytes = 0;
    this.#block = undefined;
    this.length = 0;
  }

  /** Makes room for so many bytes in all, and writes those that are new. */
  #grow(needed: number, bytes: Uint8Array): void {
    const old = this.#block;
    if (old === undefined || (this.length <= COPIED_BYTES_MAX && this.isInOnePiece)) {
      const block = this.#memory.take(capacityFor(needed, this.#hint));
      if (old !== undefined) {
        block.set(old.subarray(0, this.length));
        this.#memory.give(old);
      }
      block.set(bytes, this.length);
      this.#block = block;
      return;
    }
    const room = this.capacity - this.length;
    old.set(bytes.subarray(0, room), old.length - room);
    const next = this.#memory.take(
      Math.min(capacityFor(needed, this.#hint) - this.capacity, NEXT_BLOCK_BYTES_MAX),
    );
    next.set(bytes.subarray(room));
    this.#full.push(old);
    this.#fullBytes += old.length;
    this.#block = next;
  }
}
