// Pools the memory of bodies that come in pieces, and of what bodies inflate to, so that it is used
// again.

import { MemoryPool } from "../../base/memory-pool.ts";

const options = {
  /** The pool keeps enough for two bodies of the default cap, which is 20 MiB. */
  keptBytesMax: 44_040_192,
  full: "drop_smallest",
  idleMs: 10_000,
  /** A block is not spent on a body that needs less than a quarter of it. */
  wasteFactor: 4,
} as const;

export class BodyMemory extends MemoryPool {
  constructor() {
    super(options);
  }
}
