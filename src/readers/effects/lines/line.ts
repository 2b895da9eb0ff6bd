import type { StoredFrame } from "../../stream/frame.ts";
import type { EventEffect, LinePlace, Rejection, Stamp, UsageClass } from "../types.ts";

/** A stored line. One object is reused for each line, so visitors must not retain it. */
export interface StoredLine {
  readonly frame: StoredFrame;
  readonly line: number;
  readonly projectId: string;
  readonly uuidHashHigh: number;
  readonly uuidHashLow: number;
  readonly receivedAtMs: number;
  /** The event's time, limited to `receivedAtMs`. */
  readonly timeMs: number;
  readonly usageClass: UsageClass;
  readonly distinctId: string;
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

const aheadMsMax = 3_600_000;

/**
 * Returns `received_at`, or the storage time of the frame if `received_at` is over an hour later.
 * Otherwise, a gateway with a wrong clock would stop everything that waits for time to pass.
 */
export function recordMs({ receivedAtMs, frame }: StoredLine): number {
  return receivedAtMs - frame.storedAtMs > aheadMsMax ? frame.storedAtMs : receivedAtMs;
}
