// What a deadline does to a frame. Each waiter of a shared frame has a deadline of its own, and its
// end concerns no other waiter. Lines that are certainly not in the store leave the frame with
// their waiter. Other lines stay, and their waiter hears that nobody knows whether they are stored.

import type { ErrorCode } from "../../platform/base/errors.ts";
import type { FrameOutcome, FrameWaiter } from "./port.ts";

/** How many numbers in a frame's `joins` belong to one waiter. */
export const joinWords = 3;

/** The parts of a frame that a deadline concerns. */
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

/** What waiters hear when their deadline is past. */
export interface Expiry {
  readonly outcome: Extract<FrameOutcome, "refused" | "unknown">;
  readonly code: ErrorCode;
}

/** Waiters that have left their frame, each with what it had joined with. */
export interface Expired {
  readonly waiters: FrameWaiter[];
  readonly joins: number[];
  /** Bytes that are not in the frame any more. */
  readonly bytesCut: number;
  /** Where the lines of each waiter begin and end, if they are still in the frame. */
  readonly ranges: { readonly start: number; readonly end: number }[];
}

/** Whether no waiter of the frame has time left, so that the frame itself is at its end. */
export function isPast(
  { deadlineMs, joins }: Pick<ExpiringFrame, "deadlineMs" | "joins">,
  monotonicMs: number,
): boolean {
  if (deadlineMs > monotonicMs) return false;
  for (let at = 0; at < joins.length; at += joinWords) if (joins[at]! > monotonicMs) return false;
  return true;
}

/** Takes the place of a waiter that was told `unknown`: its lines stay in the frame. */
const told: FrameWaiter = { frameSettled: () => {} };
const toldDeadlineMs = Number.NEGATIVE_INFINITY;

/**
 * Takes out the waiters whose deadline is past. Where the outcome is `refused`, their lines go too,
 * and so do the lines that no waiter has joined with. Where it is `unknown`, each leaves its place
 * and what it joined with, because the lines of the others are found by what comes before them.
 */
export function takeExpired(
  frame: ExpiringFrame,
  monotonicMs: number,
  { outcome }: Expiry,
): Expired {
  const { waiters, joins, buffer } = frame;
  const cuts = outcome === "refused";
  const gone: FrameWaiter[] = [];
  const goneJoins: number[] = [];
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
    const isGone = deadlineMs <= monotonicMs && waiter !== told;
    if (isGone) {
      gone.push(waiter);
      goneJoins.push(deadlineMs, events, bytes);
    }
    if (isGone && cuts) {
      frame.joinedEvents -= events;
    } else {
      const isTold = isGone || waiter === told;
      frame.waiters.push(isTold ? told : waiter);
      frame.joins.push(isTold ? toldDeadlineMs : deadlineMs, events, bytes);
      if (isGone) ranges.push({ start: to, end: to + bytes });
      if (!isTold) frame.deadlineMs = Math.min(frame.deadlineMs, deadlineMs);
      if (to < from) buffer.copyWithin(to, from, from + bytes);
      to += bytes;
    }
    from += bytes;
  }
  if (cuts) {
    frame.joinedBytes = to;
    frame.rollback();
  }
  return { waiters: gone, joins: goneJoins, bytesCut: bytesBefore - frame.joinedBytes, ranges };
}
