// Reusable memory for bodies that arrive in pieces, and for inflated bodies.

import { MemoryPool } from "../../platform/base/memory-pool.ts";

/**
 * Maximum bytes of unused memory that is retained: enough for two bodies of the default maximum
 * size, which is 20 MiB.
 */
const keptBytesMax = 44_040_192;
const idleMs = 10_000;
/**
 * Maximum ratio of a block's size to the bytes that a body needs; a larger block is not used for
 * the body.
 */
const wasteFactor = 4;

export class BodyMemory {
  readonly #pool = new MemoryPool({ keptBytesMax, full: "drop_smallest", idleMs, wasteFactor });

  get keptBytes(): number {
    return this.#pool.keptBytes;
  }

  /** Returns memory for at least `bytes` of a body. The memory is not cleared. */
  take(bytes: number): Buffer {
    return this.#pool.take(bytes);
  }

  /** Releases a body's memory. No other code may reference the memory after that. */
  give(memory: Buffer): void {
    this.#pool.give(memory);
  }
}
