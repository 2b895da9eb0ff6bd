// Stores the bytes of one body that arrives in pieces. It allocates memory as bytes arrive, and
// does not trust a declared length. It stores a large body in several blocks, because copying 64
// MiB takes a tenth of a second.

import { MemoryPool } from "../../platform/base/memory-pool.ts";

const GROWTH_ON_HINT = 4;
const GROWTH_WITHOUT_HINT = 2;
const CAPACITY_MIN = 16_384;
/** Copying this number of bytes takes up to two milliseconds. */
const COPIED_BYTES_MAX = 4_194_304;
/**
 * If a body has at least this size and a declared length, its buffer grows by a larger factor, so
 * that it needs to grow only once.
 */
const LARGE_BYTES = 1_048_576;
const GROWTH_ON_HINT_LARGE = 16;
const NEXT_BLOCK_BYTES_MAX = 33_554_432;
/** Copying this number of bytes takes about 2 ms, including page faults. */
const copiedBytesPerTurn = 4_194_304;

/**
 * `hint` is the expected size. Because it may be wrong, the capacity also depends on the bytes that
 * have arrived.
 */
export function capacityFor(needed: number, hint: number | undefined): number {
  const growth = needed < LARGE_BYTES ? GROWTH_ON_HINT : GROWTH_ON_HINT_LARGE;
  if (hint !== undefined && hint >= needed)
    return Math.min(hint, Math.max(needed * growth, CAPACITY_MIN));
  return Math.max(needed * GROWTH_WITHOUT_HINT, CAPACITY_MIN);
}

export class BodyBuffer {
  length = 0;
  #full: Buffer[] = [];
  #fullBytes = 0;
  #block: Buffer | undefined;
  readonly #memory: BodyMemory;
  readonly #hint: number | undefined;

  constructor(memory: BodyMemory, hint: number | undefined) {
    this.#memory = memory;
    this.#hint = hint;
  }

  static of(memory: BodyMemory, block: Buffer, length: number): BodyBuffer {
    const buffer = new BodyBuffer(memory, undefined);
    buffer.#block = block;
    buffer.length = length;
    return buffer;
  }

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

  /** If this is false, call `join` before `bytes`. */
  get isInOnePiece(): boolean {
    return this.#full.length === 0;
  }

  append(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    if (needed > this.capacity) this.#grow(needed, bytes);
    else this.#block?.set(bytes, this.length - this.#fullBytes);
    this.length = needed;
  }

  /** The caller must not read the returned memory after `free`. */
  bytes(): Buffer {
    if (!this.isInOnePiece) throw new Error("cannot read a body: it is in several pieces");
    return this.#block?.subarray(0, this.length) ?? Buffer.alloc(0);
  }

  /** The caller must call no other method until the promise is fulfilled. */
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
      if (this.#full[0] === block) this.#memory.give(this.#full.shift()!);
    }
    this.#memory.give(this.#block!);
    this.#fullBytes = 0;
    this.#block = whole;
  }

  free(): void {
    for (const block of this.#full) this.#memory.give(block);
    if (this.#block !== undefined) this.#memory.give(this.#block);
    this.#full = [];
    this.#fullBytes = 0;
    this.#block = undefined;
    this.length = 0;
  }

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

/** The pool retains enough memory for two bodies of the default maximum size. */
const keptBytesMax = 44_040_192;
const idleMs = 10_000;
const wasteFactor = 4;

export class BodyMemory extends MemoryPool {
  constructor() {
    super({ keptBytesMax, full: "drop_smallest", idleMs, wasteFactor });
  }
}
