// Memory for frames, in four sizes, of which the largest is a full frame. A frame that needs more
// gets memory made for it alone, which is not kept.

import { MemoryPool } from "../base/memory-pool.ts";
import { memoryBytesFor } from "./frame.ts";

const keptBytesMax = 16 * 1_048_576;
const idleMs = 10_000;
const smallBytes = 4_096;
const mediumBytes = 65_536;
/** Fits the frames of large requests. */
const largeBytes = 262_144;

export class FrameMemory {
  readonly #pool = new MemoryPool({
    keptBytesMax,
    full: "refuse",
    idleMs,
    wasteFactor: 1,
  });
  /** Ascending. */
  readonly #sizes: readonly number[];

  constructor(frameBytesMax: number) {
    this.#sizes = [smallBytes, mediumBytes, largeBytes, frameBytesMax]
      .filter((size) => size <= frameBytesMax)
      .map(memoryBytesFor);
  }

  /** Memory of a frame for at least `lineBytes` of lines, with whatever it held before. */
  take(lineBytes: number): Buffer {
    const needed = memoryBytesFor(lineBytes);
    for (const size of this.#sizes) if (size >= needed) return this.#pool.take(size);
    return Buffer.allocUnsafeSlow(needed);
  }

  /**
   * Takes a frame's memory back. Nobody may hold on to that memory any more, not even the client.
   */
  give(memory: Buffer): void {
    if (this.#sizes.includes(memory.length)) this.#pool.give(memory);
  }
}
