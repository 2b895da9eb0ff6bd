// The memory budget of duplicate detection. A stream's share depends only on its lane and the
// number of streams, so its duplicates do not depend on how the streams were interleaved.

import type { Lane } from "../../../platform/base/lane.ts";

interface DuplicatesBudgetOptions {
  readonly bytesMax: number;
  /** Each of these streams has its share from the start. */
  readonly streams?: readonly { readonly lane: Lane }[];
}

/** The shares of the lanes. An import repeats events less often than clients do. */
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

  /** Released bytes are negative. */
  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Returns whether a stream of the lane that has `ownBytes` may allocate `bytes` more. */
  hasRoom(lane: Lane, ownBytes: number, bytes: number): boolean {
    const streams = Math.max(1, this.#expected[lane], this.#streams[lane]);
    return ownBytes + bytes <= (this.#bytesMax * partOfLane[lane]) / streams;
  }
}
