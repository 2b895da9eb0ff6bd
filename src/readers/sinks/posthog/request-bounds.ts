// How large a request an upstream takes, as is learnt from all its answers.

import type { SinkRecord } from "../sink-records.ts";

const bytesMin = 65_536;

export class RequestBounds {
  readonly eventsMax: number;
  /** What a request may have, before it is packed. */
  bytesMax: number;

  constructor({ eventsMax, bytesMax }: Pick<RequestBounds, "eventsMax" | "bytesMax">) {
    this.eventsMax = eventsMax;
    this.bytesMax = bytesMax;
  }

  /** These together were too large: later requests are smaller from the start. */
  tooLarge(events: readonly SinkRecord[]): void {
    const bytes = events.reduce((sum, { text }) => sum + text.length, 0);
    this.bytesMax = Math.max(bytesMin, Math.min(this.bytesMax, bytes) / 2);
  }
}
