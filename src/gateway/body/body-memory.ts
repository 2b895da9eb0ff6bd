// Reusable memory for bodies that arrive in pieces, and for inflated bodies.

import { MemoryPool } from "../../platform/base/memory-pool.ts";

/** Enough for two bodies of the default cap, which is 20 MiB. */
const keptBytesMax = 44_040_192;
const idleMs = 10_000;
/** A block is not used for a body that needs less than a quarter of it. */
const wasteFactor = 4;

export class BodyMemory {
  readonly #pool = new MemoryPool({ keptBytesMax, full: "drop_smallest", idleMs, wasteFactor });

  get keptBytes(): number {
    return this.#pool.keptBytes;
  }

  /** Returns memory for at least `bytes` of a body. It is not cleared. */
  take(bytes: number): Buffer {
    return this.#pool.take(bytes);
  }

  /** Releases a body's memory. No other code may refer to it any more. */
  give(memory: Buffer): void {
    this.#pool.give(memory);
  }
}
