// Reusable memory for bodies that arrive in pieces, and for inflated bodies.

import { MemoryPool } from "../../platform/base/memory-pool.ts";

/** Maximum bytes of unused memory that is retained: two bodies of the default maximum size. */
const keptBytesMax = 44_040_192;
const idleMs = 10_000;
/** A block that is larger than a body by more than this factor is not used for the body. */
const wasteFactor = 4;

export class BodyMemory {
  readonly #pool = new MemoryPool({ keptBytesMax, full: "drop_smallest", idleMs, wasteFactor });

  get keptBytes(): number {
    return this.#pool.keptBytes;
  }

  take(bytes: number): Buffer {
    return this.#pool.take(bytes);
  }

  give(memory: Buffer): void {
    this.#pool.give(memory);
  }
}
