// Handles the deadlines of a frame's waiters. Each waiter of a shared frame times out on its own.
// Lines that are certainly not in the store are removed from the frame with their waiter. Other
// lines stay, and their waiter gets `unknown`.

import type { ErrorCode } from "../../platform/base/errors.ts";
import type { FrameOutcome, FrameWaiter } from "./port.ts";

/** How many numbers in a frame's `joins` belong to one waiter. */
export const joinWords = 3;

/** The parts of a frame that a deadline affects. */
interface ExpiringFrame {
  /** The earliest deadline of its waiters. */
  deadlineMs: number;
  waiters: FrameWaiter[];
  /** Deadline, events and bytes of each waiter. */
  joins: number[];
  joinedBytes: number;
  joinedEvents: number;
  readonly buffer: Buffer;
  rollback(): void;
}

/** The result that waiters receive when their deadline is past. */
export interface Expiry {
  readonly outcome: Extract<FrameOutcome, "refused" | "unknown">;
  readonly code: ErrorCode;
}

/** Waiters that have left their frame, each with its entry in `joins`. */
export interface Expired {
  readonly waiters: FrameWaiter[];
  readonly joins: number[];
  /** Number of bytes that were removed from the frame. */
  readonly bytesCut: number;
  /** Where the lines of each waiter begin and end, if they are still in the frame. */
  readonly ranges: { readonly start: number; readonly end: number }[];
}

/** Returns whether the deadlines of all waiters are past, so that the frame itself expires. */
export function isPast(
  { deadlineMs, joins }: Pick<ExpiringFrame, "deadlineMs" | "joins">,
  monotonicMs: number,
): boolean {
  if (deadlineMs > monotonicMs) return false;
  for (let at = 0; at < joins.length; at += joinWords) if (joins[at]! > monotonicMs) return false;
  return true;
}

/** Replaces a waiter that was notified with `unknown`: its lines stay in the frame. */
const notified: FrameWaiter = { frameSettled: () => {} };
const notifiedDeadlineMs = Number.NEGATIVE_INFINITY;

/**
 * Removes the waiters whose deadline is past. With the outcome `refused`, their lines are removed
 * too, and so are the lines that no waiter has joined with. With `unknown`, a placeholder keeps the
 * waiter's entry in `joins`, because the position of the other lines depends on it.
 */
export function takeExpired(
  frame: ExpiringFrame,
  monotonicMs: number,
  { outcome }: Expiry,
): Expired {
  const { waiters, joins, buffer } = frame;
  const cuts = outcome === "refused";
  const expired: FrameWaiter[] = [];
  const expiredJoins: number[] = [];
  const ranges: Expired["ranges"] = [];
  const bytesBefore = frame.joinedBytes;
  frame.waiters = [];
  frame.joins = [];
  frame.deadlineMs = Number.POSITIVE_INFINITY;
  let from = 0;
  let to = 0;
  for (const [place, waiter] of waiters.entries()) {
    const at = place * joinWords;
    const [deadlineMs, events, bytes] = [joins[at]!, joins[at + 1]!, joins[at + 2]!];
    const isExpired = deadlineMs <= monotonicMs && waiter !== notified;
    if (isExpired) {
      expired.push(waiter);
      expiredJoins.push(deadlineMs, events, bytes);
    }
    if (isExpired && cuts) {
      frame.joinedEvents -= events;
    } else {
      const isNotified = isExpired || waiter === notified;
      frame.waiters.push(isNotified ? notified : waiter);
      frame.joins.push(isNotified ? notifiedDeadlineMs : deadlineMs, events, bytes);
      if (isExpired) ranges.push({ start: to, end: to + bytes });
      if (!isNotified) frame.deadlineMs = Math.min(frame.deadlineMs, deadlineMs);
      if (to < from) buffer.copyWithin(to, from, from + bytes);
      to += bytes;
    }
    from += bytes;
  }
  if (cuts) {
    frame.joinedBytes = to;
    frame.rollback();
  }
  return {
    waiters: expired,
    joins: expiredJoins,
    bytesCut: bytesBefore - frame.joinedBytes,
    ranges,
  };
}
