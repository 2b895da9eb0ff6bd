// Memory for bodies that come in pieces.

import { MemoryPool } from "../../base/memory-pool.ts";

const options = {
  /** Two bodies of the default cap. */
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
