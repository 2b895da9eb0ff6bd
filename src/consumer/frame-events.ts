// Reads the lines of a message: leaves out other projects' events, duplicates, and what is no
// event.

import type { StoredEvent } from "./types.ts";
import type { UuidWindow } from "./uuid-window.ts";

interface UnreadableLine {
  /** Counted from 1. */
  readonly line: number;
  readonly reason: string;
  readonly text: string;
}

interface FrameEvents {
  readonly events: StoredEvent[];
  readonly lines: string[];
  readonly unreadable: UnreadableLine[];
  duplicates: number;
  /** The frames that have delivered these. */
  readonly duplicatesOf: Set<number>;
}

interface FrameEventsOptions {
  /** Undefined: all. */
  readonly projects: ReadonlySet<string> | undefined;
  readonly window: UuidWindow;
  /** Tells the frame from all others. */
  readonly frame: number;
  /** What other frames have delivered is left in. */
  readonly isWhole: boolean;
}

export function frameEvents(data: Uint8Array, options: FrameEventsOptions): FrameEvents {
  const { projects, window, frame, isWhole } = options;
  const none = { events: [], lines: [], unreadable: [], duplicates: 0 };
  const found: FrameEvents = { ...none, duplicatesOf: new Set() };
  const seen = new Set<string>();
  const texts = new TextDecoder().decode(data).split("\n");
  if (texts.at(-1) === "") texts.pop();
  for (const [index, text] of texts.entries()) {
    const event = eventOf(text);
    if (typeof event === "string") {
      found.unreadable.push({ line: index + 1, reason: event, text });
      continue;
    }
    const { project_id: projectId, uuid } = event;
    if (projects !== undefined && !projects.has(projectId)) continue;
    const key = `${projectId}/${uuid}`;
    const other = isWhole ? undefined : window.duplicateOf(key, frame);
    if (other !== undefined) found.duplicatesOf.add(other);
    if (other !== undefined || (window.size > 0 && seen.has(key))) {
      found.duplicates++;
      continue;
    }
    seen.add(key);
    found.events.push(event);
    found.lines.push(text);
  }
  return found;
}

const texts = ["uuid", "project_id", "event", "distinct_id", "timestamp", "received_at"] as const;

/** A text: why it is none. */
function eventOf(text: string): StoredEvent | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return (error as Error).message;
  }
  if (typeof value !== "object" || value === null) return "no JSON object";
  const fields = value as Record<string, unknown>;
  for (const name of texts) if (typeof fields[name] !== "string") return `no text in ${name}`;
  const { properties } = fields as { properties?: unknown };
  if (typeof properties !== "object" || properties === null) return "no object in properties";
  return value as StoredEvent;
}
