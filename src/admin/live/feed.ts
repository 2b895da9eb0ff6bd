// Chooses the events that the viewers of one project, or of all projects, are shown. It takes them
// out of frames at a bounded pace, gathers them for the next push, and keeps the last few for a
// viewer who comes later. Events that are not shown are counted.

import type { JsMsg } from "@nats-io/jetstream";
import { RateWindow } from "../../base/rate-window.ts";
import { eventsHeader, isOfManyProjects } from "../../nats/names.ts";
import { type ShownEvent, shownEvent } from "./shown-event.ts";

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

export class Feed {
  readonly #project: string | undefined;
  readonly #rate: RateWindow;
  readonly #recent: ShownEvent[] = [];
  #events: ShownEvent[] = [];
  #skipped = 0;

  /** Without `project` the feed is of all projects. */
  constructor(project: string | undefined, monotonicMs: () => number) {
    this.#project = project;
    this.#rate = new RateWindow({ max: eventsPerSecondMax, monotonicMs });
  }

  /**
   * `wasThere`: the message was stored before anybody watched, so events of it that are not shown
   * do not count as skipped.
   */
  take(message: JsMsg, wasThere = false): void {
    const project = this.#project;
    const isShared = isOfManyProjects(message.subject);
    const count = eventsOf(message);
    // Messages from before the watching are few and come once. They have a limit of their own, so
    // that they use up no room of the events that come now.
    const room = wasThere ? recentMax : this.#rate.left;
    if (room <= 0) {
      // In a frame of many projects only the events themselves say whose they are. It is not opened
      // here, so for a feed of one project nothing of it is counted.
      if (project === undefined || !isShared) this.#skipped += count;
      return;
    }
    const own =
      project !== undefined && isShared ? `"project_id":${JSON.stringify(project)}` : undefined;
    const { lines, passed } = linesOf(message.data, { max: room, own });
    for (const line of lines) this.#show(line, wasThere);
    this.#recent.splice(0, this.#recent.length - recentMax);
    if (wasThere) return;
    if (own === undefined) this.#skipped += Math.max(0, count - lines.length);
    else this.#skipped += passed;
  }

  passedOver(messages: number): void {
    this.#skipped += messages;
  }

  /** The events that have come since the last call, and how many were skipped. */
  flush(): Batch {
    const batch = { events: this.#events, skipped: this.#skipped };
    this.#events = [];
    this.#skipped = 0;
    return batch;
  }

  /** The events that were shown last, the newest last. */
  recent(): readonly ShownEvent[] {
    return this.#recent;
  }

  #show(line: Buffer, wasThere: boolean): void {
    const event = shownEvent(line);
    if (event === undefined || (this.#project !== undefined && event.project !== this.#project))
      return;
    const shown = wasThere ? { ...event, wasThere } : event;
    this.#events.push(shown);
    this.#recent.push(shown);
    if (!wasThere) this.#rate.spend(1);
  }
}

/**
 * How many events the message says that it holds. One that somebody else has published may not say
 * it, or say no number: it counts as one.
 */
function eventsOf({ headers }: JsMsg): number {
  const events = Number(headers?.get(eventsHeader));
  return Number.isSafeInteger(events) && events > 0 ? events : 1;
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
