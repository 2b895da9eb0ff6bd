// Chooses the events that the viewers of one project, or of all, are shown. It takes them out of
// frames at a bounded pace, gathers them for the next push, and keeps the last few for a viewer who
// comes later. What is not shown is counted.

import type { JsMsg } from "@nats-io/jetstream";
import { RateWindow } from "../../base/rate-window.ts";
import { eventsHeader, isOfManyProjects } from "../../nats/names.ts";
import { type ShownEvent, shownEvent } from "./shown-event.ts";

export interface Feed {
  /** `wasThere`: it was stored before anybody watched, so what is not shown of it is not missed. */
  take(message: JsMsg, wasThere?: boolean): void;
  passedOver(messages: number): void;
  /** What has come since the last call. */
  flush(): Batch;
  /** What was shown last, the newest last. */
  recent(): readonly ShownEvent[];
}

export interface Batch {
  readonly events: readonly ShownEvent[];
  /** Events that have come and are not among them; of what was not looked at, at least so many. */
  readonly skipped: number;
}

export const eventsPerSecondMax = 50;
const recentMax = 50;
const lineFeed = 0x0a;

/** `project` undefined: of all. */
export function createFeed(project: string | undefined, monotonicMs: () => number): Feed {
  const recent: ShownEvent[] = [];
  let events: ShownEvent[] = [];
  let skipped = 0;
  const rate = new RateWindow({ max: eventsPerSecondMax, monotonicMs });

  function take(message: JsMsg, wasThere = false): void {
    const isShared = isOfManyProjects(message.subject);
    const count = Number(message.headers?.get(eventsHeader));
    // What was there is a few messages, once, and is not to take the room of what comes now.
    const room = wasThere ? recentMax : rate.left;
    if (room <= 0) {
      // Only each event says whose it is.
      if (project === undefined || !isShared) skipped += count;
      return;
    }
    const own =
      project !== undefined && isShared ? `"project_id":${JSON.stringify(project)}` : undefined;
    const { lines, passed } = linesOf(message.data, { max: room, own });
    for (const line of lines) {
      const event = shownEvent(line);
      if (event === undefined || (project !== undefined && event.project !== project)) continue;
      const shown = wasThere ? { ...event, wasThere } : event;
      events.push(shown);
      recent.push(shown);
      if (!wasThere) rate.spend(1);
    }
    recent.splice(0, recent.length - recentMax);
    if (wasThere) return;
    if (own === undefined) skipped += Math.max(0, count - lines.length);
    else skipped += passed;
  }

  return {
    take,
    passedOver(messages) {
      skipped += messages;
    },
    flush() {
      const batch = { events, skipped };
      events = [];
      skipped = 0;
      return batch;
    },
    recent: () => recent,
  };
}

/**
 * The first lines, in the memory they are in; with `own`, of those that hold it, and how many more
 * hold it.
 */
function linesOf(
  data: Uint8Array,
  { max, own }: { max: number; own: string | undefined },
): { lines: Buffer[]; passed: number } {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
  const lines: Buffer[] = [];
  let passed = 0;
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(lineFeed, start);
    if (end < 0) end = bytes.length;
    const line = bytes.subarray(start, end);
    if (own !== undefined && !line.includes(own)) continue;
    if (lines.length < max) lines.push(line);
    else if (own === undefined) break;
    else passed++;
  }
  return { lines, passed };
}
