// The interface between the reader of frames and the code that counts and applies its lines.

import type { StoredFrame } from "../../stream/frame.ts";
import type { EventEffect, LinePlace, Rejection, Stamp, UsageClass } from "../types.ts";

/** A stored line. One object is filled again for each line, so visitors must not retain it. */
export interface StoredLine {
  readonly frame: StoredFrame;
  readonly line: number;
  readonly projectId: string;
  /** The high half of a hash over project, uuid, name and distinct id, as a signed word. */
  readonly uuidHashHigh: number;
  readonly uuidHashLow: number;
  readonly receivedAtMs: number;
  /** The event's time, limited to `receivedAtMs`. */
  readonly timeMs: number;
  readonly usageClass: UsageClass;
  readonly distinctId: string;
  /** The high half of a hash over the distinct id, as a signed word. */
  readonly idHashHigh: number;
  readonly idHashLow: number;
  /** Whether the event creates a person for a distinct id that has no person. */
  readonly hasPerson: boolean;
  /** Whether the event has no effect besides creating or touching a person. */
  readonly isPlain: boolean;
  stamp(): Stamp;
  place(): LinePlace;
  effect(): EventEffect;
}

export interface LineVisitor {
  line(line: StoredLine): void;
  /** Visits an invalid line. `line` is its index in the frame. `projectId` is "" if unknown. */
  unreadable(frame: StoredFrame, line: number, projectId: string, rejection: Rejection): void;
}

/** Maximum time by which `received_at` may be after the storage. Correct clocks differ less. */
const aheadMsMax = 3_600_000;

/**
 * Returns the time of a line for duplicate detection and spikes. This is `received_at`, or the
 * storage time of the frame if `received_at` is over an hour later. Otherwise, a gateway whose
 * clock is a year ahead would stop everything that waits for time to pass.
 */
export function recordMs({ receivedAtMs, frame }: StoredLine): number {
  return receivedAtMs - frame.storedAtMs > aheadMsMax ? frame.storedAtMs : receivedAtMs;
}
