// A browser that receives server-sent events at its own speed. If it reads too slowly it loses
// events, and delays no other part.

import type { ServerResponse } from "node:http";
import type { Batch } from "./feed.ts";

const bytesWaitingMax = 262_144;
const stuckMs = 30_000;

export interface Viewer {
  /** Sends one line of JSON. Returns false, and sends nothing, if too much is unread. */
  send(name: string, data: string): boolean;
  push(batch: Batch): void;
  /** Returns whether the browser reads so little that another one should get its slot. */
  isStuck(): boolean;
  end(): void;
}

export class BrowserViewer implements Viewer {
  readonly #response: ServerResponse;
  readonly #monotonicMs: () => number;
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
