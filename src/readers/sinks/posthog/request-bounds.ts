// What is learnt of an upstream from all its answers: how large a request it takes, and whether it
// takes anything at all. One that refuses every event, one by one, is more likely to be in trouble
// than to have been sent nothing but bad events, so nothing more is put aside for its word.

import type { SinkRecord } from "../sink-records.ts";

interface RequestBoundsOptions {
  readonly eventsMax: number;
  readonly bytesMax: number;
  /** So many events in a row may be refused, and none taken in between. */
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

  /** What a request may have, before it is packed. */
  get bytesMax(): number {
    return this.#bytesMax;
  }

  taken(events: number): void {
    if (events > 0) this.#refusedInRow = 0;
  }

  /** These together were too large: later requests are smaller from the start. */
  tooLarge(events: readonly SinkRecord[]): void {
    const bytes = events.reduce((sum, { text }) => sum + text.length, 0);
    this.#bytesMax = Math.max(bytesMin, Math.min(this.#bytesMax, bytes) / 2);
  }

  /** Whether so many more events may be put aside as refused, all of them; counts them then. */
  mayRefuse(events: number): boolean {
    if (this.#refusedInRow + events > this.#refusedMax) return false;
    this.#refusedInRow += events;
    return true;
  }

  refusesAll(why: string): string {
    return `it has refused ${this.#refusedMax} events in a row, the last with ${why}: nothing more is put aside; --accept-refused puts them all aside`;
  }
}
