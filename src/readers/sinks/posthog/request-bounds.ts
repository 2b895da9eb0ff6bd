// Adapts the size of requests, and limits the number of refused events. An upstream that refuses
// every event is more likely to be faulty than all events are.

import type { SinkRecord } from "../sink-records.ts";

interface RequestBoundsOptions {
  readonly eventsMax: number;
  readonly bytesMax: number;
  /** Maximum number of events that may be refused in a row. */
  readonly refusedMax: number;
}

const bytesMin = 65_536;

export class RequestBounds {
  readonly eventsMax: number;
  readonly #refusedMax: number;
  #bytesMax: number;
  #refusedInRow = 0;

  constructor({ eventsMax, bytesMax, refusedMax }: RequestBoundsOptions) {
    this.eventsMax = eventsMax;
    this.#bytesMax = bytesMax;
    this.#refusedMax = refusedMax;
  }

  /** Before compression. */
  get bytesMax(): number {
    return this.#bytesMax;
  }

  taken(events: number): void {
    if (events > 0) this.#refusedInRow = 0;
  }

  /** Halves later requests, because the events together were too large. */
  tooLarge(events: readonly SinkRecord[]): void {
    const bytes = events.reduce((sum, { text }) => sum + text.length, 0);
    this.#bytesMax = Math.max(bytesMin, Math.min(this.#bytesMax, bytes) / 2);
  }

  /** Whether more events may be rejected as refused. Counts them if they may. */
  mayRefuse(events: number): boolean {
    if (this.#refusedInRow + events > this.#refusedMax) return false;
    this.#refusedInRow += events;
    return true;
  }

  refusesAll(why: string): string {
    return `it has refused ${this.#refusedMax} events in a row, the last with ${why}: no more are rejected; --accept-refused rejects them all`;
  }
}
