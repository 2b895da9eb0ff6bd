// Selects the events for the viewers with the same filter. It limits the rate of lines that are
// parsed, and collects events until they are sent.

import type { ServerResponse } from "node:http";
import type { JsMsg } from "@nats-io/jetstream";
import { RateWindow } from "../platform/base/rate-window.ts";
import { eventsHeader, isOfManyProjects } from "../platform/nats/names.ts";

/** A filter for events. An undefined member matches all events. */
export interface LiveFilter {
  readonly project?: string | undefined;
  readonly event?: string | undefined;
  readonly distinctId?: string | undefined;
}

export interface Batch {
  readonly events: readonly ShownEvent[];
  /** Number of skipped events. Each unread message counts as one event. */
  readonly skipped: number;
}

const eventsPerSecondMax = 50;
/** Maximum number of parsed lines per second. A viewer cannot read more lines. */
const parsedPerSecondMax = 1_000;
const recentMax = 50;
const lineFeed = 0x0a;
const backslash = 0x5c;

export class Feed {
  readonly #filter: LiveFilter;
  readonly #rate: RateWindow;
  readonly #parsing: RateWindow;
  readonly #recent: ShownEvent[] = [];
  #events: ShownEvent[] = [];
  #skipped = 0;

  constructor(filter: LiveFilter, monotonicMs: () => number) {
    this.#filter = filter;
    this.#rate = new RateWindow({ max: eventsPerSecondMax, monotonicMs });
    this.#parsing = new RateWindow({ max: parsedPerSecondMax, monotonicMs });
  }

  take(message: JsMsg, wasThere = false): void {
    const wanted = this.#wantedIn(message);
    const count = eventsOf(message);
    // Messages from before the start have their own limit, because they are read only once and must
    // not use the limit of new events.
    const room = wasThere ? recentMax : this.#rate.left;
    if (room <= 0) {
      if (wanted === undefined) this.#skipped += count;
      return;
    }
    const { lines, passed } = linesOf(message.data, { max: room, wanted });
    for (const line of lines) this.#show(line, wasThere);
    this.#recent.splice(0, this.#recent.length - recentMax);
    if (wasThere) return;
    this.#skipped += wanted === undefined ? Math.max(0, count - lines.length) : passed;
  }

  #wantedIn({ subject }: JsMsg): ((line: Buffer) => boolean) | undefined {
    const { project, event, distinctId } = this.#filter;
    const ofProject =
      project !== undefined && isOfManyProjects(subject)
        ? `"project_id":${JSON.stringify(project)}`
        : undefined;
    const texts = [event, distinctId].filter((text) => text !== undefined);
    if (ofProject === undefined && texts.length === 0) return undefined;
    const mayMatch = texts.map(mayHold);
    return (line) => {
      if (ofProject !== undefined && !line.includes(ofProject)) return false;
      if (texts.length === 0) return true;
      if (!mayMatch.every((may) => may(line)) || this.#parsing.isSpent) return false;
      this.#parsing.spend(1);
      const head = headOf(line);
      return (
        (event === undefined || head?.["event"] === event) &&
        (distinctId === undefined || head?.["distinct_id"] === distinctId)
      );
    };
  }

  skip(messages: number): void {
    this.#skipped += messages;
  }

  flush(): Batch {
    const batch = { events: this.#events, skipped: this.#skipped };
    this.#events = [];
    this.#skipped = 0;
    return batch;
  }

  recent(): readonly ShownEvent[] {
    return this.#recent;
  }

  #show(line: Buffer, wasThere: boolean): void {
    const event = shownEvent(line);
    const { project } = this.#filter;
    if (event === undefined || (project !== undefined && event.project !== project)) return;
    const shown = wasThere ? { ...event, wasThere } : event;
    this.#events.push(shown);
    this.#recent.push(shown);
    if (!wasThere) this.#rate.spend(1);
  }
}

/**
 * Returns a fast check that is false for most lines without the text. It is true for lines with
 * escapes, because they may contain the text in escaped form.
 */
function mayHold(text: string): (line: Buffer) => boolean {
  const value = Buffer.from(JSON.stringify(text));
  return (line) => {
    const end = line.indexOf(propertiesKey);
    const head = end < 0 ? line : line.subarray(0, end);
    return head.includes(value) || head.includes(backslash);
  };
}

function eventsOf({ headers }: JsMsg): number {
  const events = Number(headers?.get(eventsHeader));
  return Number.isSafeInteger(events) && events > 0 ? events : 1;
}

function linesOf(
  data: Uint8Array,
  { max, wanted }: { max: number; wanted: ((line: Buffer) => boolean) | undefined },
): { lines: Buffer[]; passed: number } {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
  const lines: Buffer[] = [];
  let passed = 0;
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(lineFeed, start);
    if (end < 0) end = bytes.length;
    const line = bytes.subarray(start, end);
    if (wanted !== undefined && !wanted(line)) continue;
    if (lines.length < max) lines.push(line);
    else if (wanted === undefined) break;
    else passed++;
  }
  return { lines, passed };
}

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly kind: string;
  readonly receivedAt: string;
  readonly historical: boolean;
  readonly wasThere?: boolean;
  readonly text: string;
  readonly bytes: number;
  readonly isCut: boolean;
}

const textCharsMax = 4_096;
/** Any text with this number of UTF-8 bytes has at least `textCharsMax` UTF-16 units. */
const textBytesMax = 4 * textCharsMax;
const fieldCharsMax = 200;
/** Maximum bytes of the members before `properties`. Only an extreme event name exceeds it. */
const headBytesMax = 65_536;
/** This text cannot be part of an earlier string, because quotes in strings are escaped. */
const propertiesKey = ',"properties":';

function shownEvent(line: Buffer): ShownEvent | undefined {
  const head = headOf(line);
  if (head === undefined) return undefined;
  const field = (name: string): string => {
    const value = head[name];
    return typeof value === "string" ? beginningOf(value, fieldCharsMax) : "";
  };
  const text = line.toString("utf8", 0, textBytesMax);
  return {
    project: field("project_id"),
    event: field("event"),
    id: field("distinct_id"),
    kind: field("kind"),
    receivedAt: field("received_at"),
    historical: head["historical"] === true,
    text: beginningOf(text, textCharsMax),
    bytes: line.length,
    isCut: text.length > textCharsMax,
  };
}

/** Returns the members before `properties`, or undefined if the line is not a record. */
export function headOf(line: Buffer): Record<string, unknown> | undefined {
  const end = line.subarray(0, headBytesMax).indexOf(propertiesKey);
  if (end < 0 && line.length > headBytesMax) return undefined;
  try {
    return JSON.parse(end < 0 ? line.toString() : `${line.toString("utf8", 0, end)}}`) as Record<
      string,
      unknown
    >;
  } catch {
    return undefined;
  }
}

function beginningOf(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : Buffer.from(text.slice(0, charsMax)).toString();
}

const bytesWaitingMax = 262_144;
const stuckMs = 30_000;

export interface Viewer {
  send(name: string, data: string): boolean;
  push(batch: Batch): void;
  isStuck(): boolean;
  end(): void;
}

/** A browser that shows the page. A slow browser loses events, and does not delay others. */
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
