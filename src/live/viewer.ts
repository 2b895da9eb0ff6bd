// A browser that watches. It receives server-sent events at its own speed. A browser that reads too
// slowly loses events, and delays no other part.

import type { ServerResponse } from "node:http";
import type { Batch } from "./feed.ts";

const bytesWaitingMax = 262_144;
const stuckMs = 30_000;

export interface Viewer {
  /**
   * Sends an event. `data` is one line of JSON. Returns false if too much is unread: the event is
   * then not sent.
   */
  send(name: string, data: string): boolean;
  push(batch: Batch): void;
  /**
   * Returns whether the browser has read too little for too long, so that another browser should
   * get its slot.
   */
  isStuck(): boolean;
  end(): void;
}

export class BrowserViewer implements Viewer {
  readonly #response: ServerResponse;
  readonly #monotonicMs: () => number;
  /** Number of events that this viewer has missed since the last message. */
  #missed = 0;
  #wellMonotonicMs: number;

  constructor(response: ServerResponse, monotonicMs: () => number) {
    this.#response = response;
    this.#monotonicMs = monotonicMs;
    this.#wellMonotonicMs = monotonicMs();
  }

  send(name: string, data: string): boolean {
    if (!this.#hasRoom()) return false;
    this.#response.write(`event: ${name}\ndata: ${data}\n\n`);
    return true;
  }

  push({ events, skipped }: Batch): void {
    if (!this.#hasRoom()) {
      this.#missed += events.length + skipped;
    } else if (events.length + skipped + this.#missed > 0) {
      this.send("events", JSON.stringify({ events, skipped: skipped + this.#missed }));
      this.#missed = 0;
    }
  }

  isStuck(): boolean {
    return !this.#hasRoom() && this.#monotonicMs() - this.#wellMonotonicMs > stuckMs;
  }

  end(): void {
    this.#response.destroy();
  }

  #hasRoom(): boolean {
    const isWell = this.#response.writableLength <= bytesWaitingMax;
    if (isWell) this.#wellMonotonicMs = this.#monotonicMs();
    return isWell;
  }
}
