import type { StoredFrame } from "../../stream/frame.ts";
import type { EventEffect, LinePlace, Rejection, Stamp, UsageClass } from "../types.ts";

/** A stored line. The same object is used for all lines, so visitors must not retain it. */
export interface StoredLine {
  readonly frame: StoredFrame;
  readonly line: number;
  readonly projectId: string;
  readonly uuidHashHigh: number;
  readonly uuidHashLow: number;
  readonly receivedAtMs: number;
  /** The time of the event in ms. It is at most `receivedAtMs`. */
  readonly timeMs: number;
  readonly usageClass: UsageClass;
  readonly distinctId: string;
  readonly idHashHigh: number;
  readonly idHashLow: number;
  /** If true, the event creates a person unless its distinct id already has a person. */
  readonly hasPerson: boolean;
  /**
   * If true, the event has no effect except that it may create a person or update the last-seen
   * time of a person.
   */
  readonly isPlain: boolean;
  stamp(): Stamp;
  place(): LinePlace;
  effect(): EventEffect;
}

export interface LineVisitor {
  line(line: StoredLine): void;
  /** Visits an invalid line. `line` is its index in the frame. An unknown `projectId` is "". */
  unreadable(frame: StoredFrame, line: number, projectId: string, rejection: Rejection): void;
}

const aheadMsMax = 3_600_000;

/**
 * Returns `received_at` in ms. If it is more than an hour later than the storage time of the frame,
 * returns the storage time instead. Otherwise, a gateway with a wrong clock would block everything
 * that depends on the current time.
 */
export function recordMs({ receivedAtMs, frame }: StoredLine): number {
  return receivedAtMs - frame.storedAtMs > aheadMsMax ? frame.storedAtMs : receivedAtMs;
}
