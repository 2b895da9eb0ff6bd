// Memory for frames, in some sizes, of which the largest is a full frame. A frame that needs more
// gets memory made for it alone, which is not kept.

import { MemoryPool } from "../../platform/base/memory-pool.ts";
import { memoryBytesFor } from "./frame.ts";

const keptBytesMax = 16 * 1_048_576;
const idleMs = 10_000;
/** The last fits the frames of large requests. */
const ownSizes = [1_024, 4_096, 16_384, 65_536, 262_144];
/** Fewer: a shared frame grows from one to the next. */
const sharedSizes = [4_096, 65_536, 262_144];

export class FrameMemory {
  readonly #pool = new MemoryPool({
    keptBytesMax,
    full: "refuse",
    idleMs,
    wasteFactor: 1,
  });
  /** Ascending, like those of shared frames, which are among them. */
  readonly #ownSizes: readonly number[];
  readonly #sharedSizes: readonly number[];

  constructor(frameBytesMax: number) {
    const upToFull = (sizes: readonly number[]): number[] =>
      [...sizes, frameBytesMax].filter((size) => size <= frameBytesMax).map(memoryBytesFor);
    this.#ownSizes = upToFull(ownSizes);
    this.#sharedSizes = upToFull(sharedSizes);
  }

  /** How many bytes of memory `takeOwn` gives. */
  ownBytesFor(lineBytes: number): number {
    return sizeFor(this.#ownSizes, lineBytes);
  }

  /** Memory of a frame for at least `lineBytes` of lines, with whatever it held before. */
  takeOwn(lineBytes: number): Buffer {
    return this.#pool.take(sizeFor(this.#ownSizes, lineBytes));
  }

  /** The same for a frame that more lines may join. */
  takeShared(lineBytes: number): Buffer {
    return this.#pool.take(sizeFor(this.#sharedSizes, lineBytes));
  }

  /**
   * Takes a frame's memory back. Nobody may hold on to that memory any more, not even the client.
   */
  give(memory: Buffer): void {
    if (this.#ownSizes.includes(memory.length)) this.#pool.give(memory);
  }
}

function sizeFor(sizes: readonly number[], lineBytes: number): number {
  const needed = memoryBytesFor(lineBytes);
  for (const size of sizes) if (size >= needed) return size;
  return needed;
}
