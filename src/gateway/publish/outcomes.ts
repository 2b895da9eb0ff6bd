// Decides, from the answers to the sends of a frame, whether and when the frame is sent again, and
// what its outcome is.

import type { ErrorCode } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { Frame } from "./frame.ts";
import type { NoPubAck, PubAck } from "./pub-ack.ts";

interface Consequence {
  readonly cause: AckFailureCause;
  readonly isRefused: boolean;
  readonly code?: ErrorCode;
  /**
   * The pause before the next send. It is Infinity if no retry is needed yet, because the actual
   * answer may still arrive.
   */
  readonly pauseMs: number;
}

/** The pause after a temporary error: no stream, no leader, or an error of the store. */
const refusedPauseMs = 100;
/**
 * The pause while an earlier send of the frame is not committed. When it is committed, both sends
 * are answered.
 */
const inFlightPauseMs = 250;

export const consequences: Readonly<Record<NoPubAck, Consequence>> = {
  // A whole batch may not fit even if some of its frames do. So each frame is sent again
  // immediately.
  stream_full: { cause: "store_full", isRefused: true, code: "store_full", pauseMs: 0 },
  server_full: { cause: "store_full", isRefused: true, code: "store_full", pauseMs: 0 },
  too_large: { cause: "refused", isRefused: true, code: "unavailable", pauseMs: 0 },
  batch_refused: { cause: "batch_refused", isRefused: true, pauseMs: 0 },
  no_responders: { cause: "no_responders", isRefused: true, pauseMs: refusedPauseMs },
  refused: { cause: "refused", isRefused: true, pauseMs: refusedPauseMs },
  failed: { cause: "refused", isRefused: false, pauseMs: refusedPauseMs },
  in_flight: { cause: "in_flight", isRefused: false, pauseMs: inFlightPauseMs },
  foreign: { cause: "foreign", isRefused: false, pauseMs: Number.POSITIVE_INFINITY },
  malformed: { cause: "malformed", isRefused: false, pauseMs: Number.POSITIVE_INFINITY },
};

/**
 * Returns `stored` if the message must be from this frame. Returns `duplicate` if it may be from
 * another request.
 */
export function outcomeOf({ sends, sequenceBefore }: Frame, ack: PubAck): "stored" | "duplicate" {
  const isOwnRepeat = sends > 1 && ack.seq > sequenceBefore;
  return ack.duplicate === true && !isOwnRepeat ? "duplicate" : "stored";
}

export function outcomeUnacked(frame: Frame): "refused" | "unknown" {
  return frame.isRefused ? "refused" : "unknown";
}

/** The list is closed, because a cause is the value of a metrics label. */
export const ackFailureCauses = [
  "timeout",
  "disconnected",
  "no_responders",
  "store_full",
  "refused",
  "batch_refused",
  "in_flight",
  "foreign",
  "malformed",
] as const;
export type AckFailureCause = (typeof ackFailureCauses)[number];

/** `parted` means that the batch was split, and its frames are sent again one by one. */
export const batchOutcomes = ["stored", "parted"] as const;
export type BatchOutcome = (typeof batchOutcomes)[number];

export interface PublishMetrics {
  frameSent(lane: Lane, events: number, bytes: number): void;
  frameAcked(lane: Lane, seconds: number): void;
  frameRetried(): void;
  batchEnded(outcome: BatchOutcome, frames: number): void;
  ackFailed(cause: AckFailureCause): void;
  duplicateFrame(lane: Lane, events: number): void;
}
