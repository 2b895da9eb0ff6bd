// What a deadline does to a frame: each waiter of a shared frame has its own, and one that is past
// concerns nobody else. Lines that are certainly not in the store leave the frame with their
// waiter; others stay, and their waiter hears that nobody knows.

import type { ErrorCode } from "../base/errors.ts";
import type { FrameOutcome, FrameWaiter } from "../base/types.ts";

/** The parts of a frame's `shares` that one waiter has. */
export const shareWords = 3;

/** What of a frame a deadline concerns. */
export interface ExpiringFrame {
  /** The first of its waiters' deadlines. */
  deadlineMs: number;
  waiters: FrameWaiter[];
  /** Deadline, events and bytes of each waiter. */
  shares: number[];
  joinedBytes: number;
  joinedEvents: number;
  readonly buffer: Buffer;
  rollback(): void;
}

/** What the waiters hear whose deadline is past. */
export interface Expiry {
  readonly outcome: Extract<FrameOutcome, "refused" | "unknown">;
  readonly code: ErrorCode;
}

/** Waiters that have left their frame, each with its part of it. */
export interface Expired {
  readonly waiters: FrameWaiter[];
  readonly shares: number[];
  /** Bytes that are not in the frame any more. */
  readonly bytesCut: number;
}

/** Whether no waiter is left that still has time: the frame itself is at its end. */
export function isPast(
  { deadlineMs, shares }: Pick<ExpiringFrame, "deadlineMs" | "shares">,
  monotonicMs: number,
): boolean {
  if (deadlineMs > monotonicMs) return false;
  for (let at = 0; at < shares.length; at += shareWords)
    if (shares[at]! > monotonicMs) return false;
  return true;
}

/**
 * Takes the waiters out whose deadline is past, and their lines too where the outcome is `refused`.
 * Lines that nobody has joined with go.
 */
export function takeExpired(
  frame: ExpiringFrame,
  monotonicMs: number,
  { outcome }: Expiry,
): Expired {
  const { waiters, shares, buffer } = frame;
  const cuts = outcome === "refused";
  const gone: FrameWaiter[] = [];
  const goneShares: number[] = [];
  const bytesBefore = frame.joinedBytes;
  frame.waiters = [];
  frame.shares = [];
  frame.deadlineMs = Number.POSITIVE_INFINITY;
  let from = 0;
  let to = 0;
  for (const [place, waiter] of waiters.entries()) {
    const at = place * shareWords;
    const [deadlineMs, events, bytes] = [shares[at]!, shares[at + 1]!, shares[at + 2]!];
    const isGone = deadlineMs <= monotonicMs;
    (isGone ? gone : frame.waiters).push(waiter);
    (isGone ? goneShares : frame.shares).push(deadlineMs, events, bytes);
    if (!isGone) frame.deadlineMs = Math.min(frame.deadlineMs, deadlineMs);
    if (cuts && isGone) {
      frame.joinedEvents -= events;
    } else {
      if (to < from) buffer.copyWithin(to, from, from + bytes);
      to += bytes;
    }
    from += bytes;
  }
  if (cuts) {
    frame.joinedBytes = to;
    frame.rollback();
  }
  return { waiters: gone, shares: goneShares, bytesCut: bytesBefore - frame.joinedBytes };
}
