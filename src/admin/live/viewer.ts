// One browser that watches: server-sent events are written to it while it reads them. A browser
// that reads too slowly loses events; nothing waits for it.

import type { ServerResponse } from "node:http";
import type { Batch } from "./feed.ts";

export interface Viewer {
  /** `data` is one line of JSON. False: too much is still unread, and this was not sent. */
  send(name: string, data: string): boolean;
  push(batch: Batch): void;
  /**
   * Whether the browser has read so little for so long that its place is better given to another.
   */
  isStuck(): boolean;
  end(): void;
}

const bytesWaitingMax = 262_144;
const stuckMs = 30_000;

export function createViewer(response: ServerResponse, monotonicMs: () => number): Viewer {
  /** How many events this viewer has missed since it was last told. */
  let missed = 0;
  let wellMs = monotonicMs();

  function hasRoom(): boolean {
    const isWell = response.writableLength <= bytesWaitingMax;
    if (isWell) wellMs = monotonicMs();
    return isWell;
  }

  function send(name: string, data: string): boolean {
    if (!hasRoom()) return false;
    response.write(`event: ${name}\ndata: ${data}\n\n`);
    return true;
  }

  return {
    send,
    push({ events, skipped }) {
      if (!hasRoom()) {
        missed += events.length + skipped;
      } else if (events.length + skipped + missed > 0) {
        send("events", JSON.stringify({ events, skipped: skipped + missed }));
        missed = 0;
      }
    },
    isStuck: () => !hasRoom() && monotonicMs() - wellMs > stuckMs,
    end: () => void response.destroy(),
  };
}
