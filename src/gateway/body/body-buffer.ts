// The bytes of one body that arrives in several pieces. Grows with the arrived bytes, never by a
// header alone. A small body grows by copying. A large body continues in another block, and is
// joined when it is complete, over several event loop iterations, because copying 64 MiB takes a
// tenth of a second.

import type { BodyMemory } from "./body-memory.ts";

const GROWTH_ON_HINT = 4;
const GROWTH_WITHOUT_HINT = 2;
const CAPACITY_MIN = 16_384;
/**
 * Maximum length in bytes of a body that grows by copying, which takes a millisecond or two. A
 * longer body continues in another block.
 */
const COPIED_BYTES_MAX = 4_194_304;
/**
 * Minimum length in bytes of a large body. If its hint is as large, it grows by
 * `GROWTH_ON_HINT_LARGE`: about one growth is then enough for a body of the default maximum size.
 * Reserved memory uses no page before it is written.
 */
const LARGE_BYTES = 1_048_576;
const GROWTH_ON_HINT_LARGE = 16;
/** Maximum bytes of the block in which a body continues when its current block is full. */
const NEXT_BLOCK_BYTES_MAX = 33_554_432;
/**
 * Number of bytes copied per event loop iteration when a body is joined, which takes some 2 ms
 * including the page faults.
 */
const copiedBytesPerTurn = 4_194_304;

/**
 * Returns the capacity to allocate when `needed` bytes have arrived. Without a hint (a
 * Content-Length, a gzip trailer) the capacity is twice the arrived bytes. With a hint the capacity
 * is the hint, but at most 4 times the arrived bytes, or 16 times for a large body, so that a false
 * hint reserves little.
 */
export function capacityFor(needed: number, hint: number | undefined): number {
  const growth = needed < LARGE_BYTES ? GROWTH_ON_HINT : GROWTH_ON_HINT_LARGE;
  if (hint !== undefined && hint >= needed)
    return Math.min(hint, Math.max(needed * growth, CAPACITY_MIN));
  return Math.max(needed * GROWTH_WITHOUT_HINT, CAPACITY_MIN);
}

export class BodyBuffer {
  length = 0;
  /** The full blocks, in order. The body continues in `#block`. */
  #full: Buffer[] = [];
  #fullBytes = 0;
  #block: Buffer | undefined;
  readonly #memory: BodyMemory;
  readonly #hint: number | undefined;

  constructor(memory: BodyMemory, hint: number | undefined) {
    this.#memory = memory;
    this.#hint = hint;
  }

  /** Creates a buffer from a block that has the body in its first `length` bytes. */
  static of(memory: BodyMemory, block: Buffer, length: number): BodyBuffer {
    const buffer = new BodyBuffer(memory, undefined);
    buffer.#block = block;
    buffer.length = length;
    return buffer;
  }

  /** Removes all bytes of the body from `length` on. */
  shorten(length: number): void {
    this.length = Math.min(this.length, length);
    while (this.length < this.#fullBytes) {
      this.#memory.give(this.#block!);
      this.#block = this.#full.pop()!;
      this.#fullBytes -= this.#block.length;
    }
  }

  get capacity(): number {
    return this.#fullBytes + (this.#block === undefined ? 0 : this.#block.length);
  }

  /** Whether the body is in one piece. If not, `join` must be called before `bytes`. */
  get isInOnePiece(): boolean {
    return this.#full.length === 0;
  }

  /**
   * Copies the bytes to the end of the body. For a small body that does not grow, this is the only
   * copy before the scanner.
   */
  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    if (needed > this.capacity) this.#grow(needed, bytes);
    else this.#block?.set(bytes, this.length - this.#fullBytes);
    this.length = needed;
  }

  /** Returns the body in the buffer's own memory, which must not be read after `free`. */
  bytes(): Buffer {
    if (!this.isInOnePiece) throw new Error("Read a body: it is in several pieces");
    return this.#block?.subarray(0, this.length) ?? Buffer.alloc(0);
  }

  /**
   * Joins a body in several pieces into one piece. No other method may be called before the promise
   * is fulfilled.
   */
  async join(nextTurn: () => Promise<void>): Promise<void> {
    if (this.isInOnePiece) return;
    const whole = this.#memory.take(this.length);
    let at = 0;
    for (const block of [...this.#full, this.#block!.subarray(0, this.length - this.#fullBytes)]) {
      for (let start = 0; start < block.length; start += copiedBytesPerTurn) {
        whole.set(block.subarray(start, start + copiedBytesPerTurn), at + start);
        await nextTurn();
      }
      at += block.length;
      // Each full block is released once it is copied. Many bodies may be joined at a time, and no
      // body should be in memory twice for long.
      if (this.#full[0] === block) this.#memory.give(this.#full.shift()!);
    }
    this.#memory.give(this.#block!);
    this.#fullBytes = 0;
    this.#block = whole;
  }

  /** Releases the memory, which must not be read any more. */
  free(): void {
    for (const block of this.#full) this.#memory.give(block);
    if (this.#block !== undefined) this.#memory.give(this.#block);
    this.#full = [];
    this.#fullBytes = 0;
    this.#block = undefined;
    this.length = 0;
  }

  /** Increases the capacity to `needed` bytes in total, and appends `bytes`. */
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
