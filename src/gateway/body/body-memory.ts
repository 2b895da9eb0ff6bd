// Memory of bodies that come in pieces, and of what bodies inflate to, which is used again.

import { MemoryPool } from "../../platform/base/memory-pool.ts";

/** Enough for two bodies of the default cap, which is 20 MiB. */
const keptBytesMax = 44_040_192;
const idleMs = 10_000;
/** A block is not spent on a body that needs less than a quarter of it. */
const wasteFactor = 4;

export class BodyMemory {
  readonly #pool = new MemoryPool({ keptBytesMax, full: "drop_smallest", idleMs, wasteFactor });

  get keptBytes(): number {
    return this.#pool.keptBytes;
  }

  /** Memory for at least `bytes` of a body, with whatever it held before. */
  take(bytes: number): Buffer {
    return this.#pool.take(bytes);
  }

  /** Takes a body's memory back. Nobody may hold on to that memory any more. */
  give(memory: Buffer): void {
    this.#pool.give(memory);
  }
}
