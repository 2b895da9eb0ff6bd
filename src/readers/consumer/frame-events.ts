import { createHash } from "node:crypto";
import type { StoredEvent } from "./types.ts";

interface UnreadableLines {
  readonly line: number;
  lines: number;
  readonly reason: string;
  readonly text: string;
}

interface FrameEvents {
  readonly events: StoredEvent[];
  readonly lines: string[];
  readonly unreadable: UnreadableLines[];
  duplicates: number;
  readonly duplicatesOf: Set<number>;
}

interface FrameEventsOptions {
  readonly projects: ReadonlySet<string> | undefined;
  readonly window: UuidWindow;
  readonly frame: number;
  readonly isWhole: boolean;
}

export function frameEvents(data: Uint8Array, options: FrameEventsOptions): FrameEvents {
  const { projects, window, frame, isWhole } = options;
  const none = { events: [], lines: [], unreadable: [], duplicates: 0 };
  const found: FrameEvents = { ...none, duplicatesOf: new Set() };
  const seen = new Set<string>();
  const unreadable = new Map<string, UnreadableLines>();
  const texts = new TextDecoder().decode(data).split("\n");
  for (const [index, text] of texts.entries()) {
    if (isBlank(text)) continue;
    const value = parsed(text);
    const fault = faultOf(value);
    if (fault !== undefined) {
      const known = unreadable.get(fault);
      const reason = value instanceof SyntaxError ? value.message : fault;
      if (known === undefined) unreadable.set(fault, { line: index + 1, lines: 1, reason, text });
      else known.lines++;
      continue;
    }
    const event = value as StoredEvent;
    const { project_id: projectId, uuid, event: name, distinct_id: distinctId } = event;
    if (projects !== undefined && !projects.has(projectId)) continue;
    // The key is a hash, because the window stores many keys and a name may be as long as an event.
    const identity = JSON.stringify([projectId, uuid, name, distinctId]);
    // Not crypto.hash, which early versions of Node 20 do not have.
    const key = createHash("sha256").update(identity).digest("base64");
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
  found.unreadable.push(...unreadable.values());
  return found;
}

const texts = ["uuid", "project_id", "event", "distinct_id", "timestamp", "received_at"] as const;

function isBlank(text: string): boolean {
  return /^\s*$/.test(text);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return error;
  }
}

function faultOf(value: unknown): string | undefined {
  if (value instanceof SyntaxError) return "not JSON";
  if (typeof value !== "object" || value === null) return "not a JSON object";
  const fields = value as Record<string, unknown>;
  for (const name of texts) if (typeof fields[name] !== "string") return `${name} is not text`;
  const { properties } = fields as { properties?: unknown };
  if (typeof properties !== "object" || properties === null) return "properties is not an object";
  return undefined;
}

interface UuidWindowOptions {
  readonly maxUuids: number;
  readonly windowMs: number;
  readonly monotonicMs: () => number;
}

interface Noted {
  readonly key: string;
  readonly atMs: number;
}

/** Remembers which frame contained each event. Equal events in one frame are not duplicates. */
export class UuidWindow {
  readonly #options: UuidWindowOptions;
  readonly #frames = new Map<string, number>();
  #order: Noted[] = [];
  #oldest = 0;

  constructor(options: UuidWindowOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#frames.size;
  }

  duplicateOf(key: string, frame: number): number | undefined {
    const { maxUuids, windowMs, monotonicMs } = this.#options;
    if (maxUuids === 0) return undefined;
    const nowMs = monotonicMs();
    this.#forget(nowMs - windowMs);
    const known = this.#frames.get(key);
    if (known !== undefined) return known === frame ? undefined : known;
    this.#frames.set(key, frame);
    this.#order.push({ key, atMs: nowMs });
    if (this.size > maxUuids) this.#forgetOldest();
    return undefined;
  }

  #forget(untilMs: number): void {
    while (this.size > 0 && this.#order[this.#oldest]!.atMs <= untilMs) this.#forgetOldest();
  }

  #forgetOldest(): void {
    this.#frames.delete(this.#order[this.#oldest++]!.key);
    if (this.#oldest <= this.size) return;
    this.#order = this.#order.slice(this.#oldest);
    this.#oldest = 0;
  }
}
