import { MemoryPool } from "../../platform/base/memory-pool.ts";
import { memoryBytesFor } from "./frame.ts";

const keptBytesMax = 16 * 1_048_576;
const idleMs = 10_000;
const ownSizes = [1_024, 4_096, 16_384, 65_536, 262_144];
const sharedSizes = [4_096, 65_536, 262_144];

export class FrameMemory {
  readonly #pool = new MemoryPool({
    keptBytesMax,
    full: "refuse",
    idleMs,
    wasteFactor: 1,
  });
  readonly #ownSizes: readonly number[];
  readonly #sharedSizes: readonly number[];

  constructor(frameBytesMax: number) {
    const upToFull = (sizes: readonly number[]): number[] =>
      [...sizes, frameBytesMax].filter((size) => size <= frameBytesMax).map(memoryBytesFor);
    this.#ownSizes = upToFull(ownSizes);
    this.#sharedSizes = upToFull(sharedSizes);
  }

  ownBytesFor(lineBytes: number): number {
    return sizeFor(this.#ownSizes, lineBytes);
  }

  takeOwn(lineBytes: number): Buffer {
    return this.#pool.take(sizeFor(this.#ownSizes, lineBytes));
  }

  takeShared(lineBytes: number): Buffer {
    return this.#pool.take(sizeFor(this.#sharedSizes, lineBytes));
  }

  /** Returns memory to the pool. Neither the gateway nor the NATS client may use it afterwards. */
  give(memory: Buffer): void {
    if (this.#ownSizes.includes(memory.length)) this.#pool.give(memory);
  }
}

function sizeFor(sizes: readonly number[], lineBytes: number): number {
  const needed = memoryBytesFor(lineBytes);
  for (const size of sizes) if (size >= needed) return size;
  return needed;
}
