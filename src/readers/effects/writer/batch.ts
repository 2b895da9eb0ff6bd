// How far a batch has come, and when it has had enough. Results do not depend on where it ends, so
// it may ask a clock.

import type { StreamItem } from "../../stream/stream-reader.ts";

/** How long a batch goes on with waiting for what a stream is known to have. */
const batchMsMax = 1_000;
/** After so much work it ends: beside large rows each event may take milliseconds. */
const workMsMax = 3_000;
/** By how much it may grow while the one before is being committed. */
const batchGrowth = 2;

export class Batch {
  events = 0;
  /** Whether parts of its transaction are written. */
  hasParts = false;
  readonly #begunMonotonicMs = performance.now();
  /** When the first new frame of each stream in it was stored, until they are committed. */
  readonly #storedAtMs = new Map<string, number>();
  #workMs = 0;

  get mayWait(): boolean {
    return performance.now() - this.#begunMonotonicMs < batchMsMax;
  }

  /**
   * Many events of one person make one row, so a batch goes by what it changes. One that has begun
   * to write ends with the step that did, or all projects would wait for what one of them changes.
   */
  hasRoom(eventsMax: number, isOtherInFlight: boolean): boolean {
    if (this.hasParts || this.#workMs >= workMsMax) return false;
    return this.events < (isOtherInFlight ? batchGrowth : 1) * eventsMax;
  }

  /** These are applied with it. */
  add(items: readonly StreamItem[]): void {
    for (const item of items) {
      if (item.kind !== "frame") continue;
      this.events += item.events;
      const { stream, storedAtMs } = item.frame;
      if (!item.isAgain && !this.#storedAtMs.has(stream)) this.#storedAtMs.set(stream, storedAtMs);
    }
  }

  committed(): void {
    this.#storedAtMs.clear();
  }

  /** When the oldest of the stream's frames that it holds uncommitted was stored. */
  storedAtMs(stream: string): number | undefined {
    return this.#storedAtMs.get(stream);
  }

  /** Counts the time that a step of it takes. */
  async timed(step: () => Promise<void>): Promise<void> {
    const sinceMonotonicMs = performance.now();
    await step();
    this.#workMs += performance.now() - sinceMonotonicMs;
  }
}
