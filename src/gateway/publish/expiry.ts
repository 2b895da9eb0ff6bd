// Handles the deadlines of the requests that wait for a frame. Each request times out separately.
// If its lines are certainly not in the store, they are removed from the frame. Otherwise they stay
// in the frame, and the request receives `unknown`.

import type { ErrorCode } from "../../platform/base/errors.ts";
import type { FrameOutcome, FrameWaiter } from "./port.ts";

export const joinWords = 3;

interface ExpiringFrame {
  deadlineMs: number;
  waiters: FrameWaiter[];
  joins: number[];
  joinedBytes: number;
  joinedEvents: number;
  readonly buffer: Buffer;
  rollback(): void;
}

export interface Expiry {
  readonly outcome: Extract<FrameOutcome, "refused" | "unknown">;
  readonly code: ErrorCode;
}

export interface Expired {
  readonly waiters: FrameWaiter[];
  readonly joins: number[];
  readonly bytesCut: number;
  readonly ranges: { readonly start: number; readonly end: number }[];
}

export function isPast(
  { deadlineMs, joins }: Pick<ExpiringFrame, "deadlineMs" | "joins">,
  monotonicMs: number,
): boolean {
  if (deadlineMs > monotonicMs) return false;
  for (let at = 0; at < joins.length; at += joinWords) if (joins[at]! > monotonicMs) return false;
  return true;
}

/** This placeholder replaces a waiter that has received `unknown`. Its lines stay in the frame. */
const notified: FrameWaiter = { frameSettled: () => {} };
const notifiedDeadlineMs = Number.NEGATIVE_INFINITY;

/**
 * Removes the waiters whose deadline has passed. If their outcome is `refused`, it also removes
 * their lines, and the lines without a waiter. If their outcome is `unknown`, a placeholder
 * replaces each waiter, because the positions of the other lines depend on its entry.
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
