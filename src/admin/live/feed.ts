// Chooses the events that the viewers of one project, or of all projects, are shown. It takes them
// out of frames at a bounded pace, gathers them for the next push, and keeps the last few for a
// viewer who comes later. Events that are not shown are counted.

import type { JsMsg } from "@nats-io/jetstream";
import { RateWindow } from "../../base/rate-window.ts";
import { eventsHeader, isOfManyProjects } from "../../nats/names.ts";
import { type ShownEvent, shownEvent } from "./shown-event.ts";

export interface Feed {
  /**
   * `wasThere`: the message was stored before anybody watched, so events of it that are not shown
   * do not count as skipped.
   */
  take(message: JsMsg, wasThere?: boolean): void;
  passedOver(messages: number): void;
  /** The events that have come since the last call, and how many were skipped. */
  flush(): Batch;
  /** The events that were shown last, the newest last. */
  recent(): readonly ShownEvent[];
}

export interface Batch {
  readonly events: readonly ShownEvent[];
  /**
   * How many events have come and are not in `events`. The number is a lower bound: a message that
   * was passed over unread counts as one event.
   */
  readonly skipped: number;
}

const eventsPerSecondMax = 50;
const recentMax = 50;
const lineFeed = 0x0a;

/** Without `project` the feed is of all projects. */
export function createFeed(project: string | undefined, monotonicMs: () => number): Feed {
  const recent: ShownEvent[] = [];
  let events: ShownEvent[] = [];
  let skipped = 0;
  const rate = new RateWindow({ max: eventsPerSecondMax, monotonicMs });

  function take(message: JsMsg, wasThere = false): void {
    const isShared = isOfManyProjects(message.subject);
    const count = Number(message.headers?.get(eventsHeader));
    // Messages from before the watching are few and come once. They have a limit of their own, so
    // that they use up no room of the events that come now.
    const room = wasThere ? recentMax : rate.left;
    if (room <= 0) {
      // In a frame of many projects only the events themselves say whose they are. It is not opened
      // here, so for a feed of one project nothing of it is counted.
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
 * The first `max` lines of a frame, not copied. With `own`, only lines that contain this text are
 * taken, and `passed` is how many more contain it.
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
