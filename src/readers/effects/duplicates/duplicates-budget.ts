// The bytes that the memories of duplicates of all streams may take together. Each stream has a
// share, which goes by its lane and by how many streams there are: what the others hold decides
// nothing, so that a stream has the same duplicates however the streams took turns. A memory that
// has no room forgets what is oldest.

import type { Lane } from "../../../platform/base/lane.ts";

interface DuplicatesBudgetOptions {
  readonly bytesMax: number;
  /** Streams that will come, and have their shares from the beginning. */
  readonly streams?: readonly { readonly lane: Lane }[];
}

/** An import sends an event again less often than clients do. */
const partOfLane: Readonly<Record<Lane, number>> = { live: 3 / 4, historical: 1 / 4 };

export class DuplicatesBudget {
  readonly #bytesMax: number;
  readonly #expected: Readonly<Record<Lane, number>>;
  readonly #streams: Record<Lane, number> = { live: 0, historical: 0 };
  #bytes = 0;

  constructor({ bytesMax, streams = [] }: DuplicatesBudgetOptions) {
    this.#bytesMax = bytesMax;
    const live = streams.filter(({ lane }) => lane === "live").length;
    this.#expected = { live, historical: streams.length - live };
  }

  get bytes(): number {
    return this.#bytes;
  }

  addStream(lane: Lane): void {
    this.#streams[lane]++;
  }

  removeStream(lane: Lane): void {
    this.#streams[lane]--;
  }

  /** Counts what was allocated, or, less than 0, given up. */
  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Whether a stream of the lane that has `ownBytes` may take `bytes` more. */
  hasRoom(lane: Lane, ownBytes: number, bytes: number): boolean {
    const streams = Math.max(1, this.#expected[lane], this.#streams[lane]);
    return ownBytes + bytes <= (this.#bytesMax * partOfLane[lane]) / streams;
  }
}
