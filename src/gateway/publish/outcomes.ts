// Decides from the answers to a frame's sends whether and when the frame is sent again, and its
// outcome.

import type { ErrorCode } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { Frame } from "./frame.ts";
import type { NoPubAck, PubAck } from "./pub-ack.ts";

interface Consequence {
  readonly cause: AckFailureCause;
  readonly isRefused: boolean;
  readonly code?: ErrorCode;
  /** Infinity while the actual answer may still arrive. */
  readonly pauseMs: number;
}

/** Pause after a transient answer: no stream, no leader, or an error of the store. */
const refusedPauseMs = 100;
/** Pause while an earlier send of the frame is not committed. Its commit answers both sends. */
const inFlightPauseMs = 250;

export const consequences: Readonly<Record<NoPubAck, Consequence>> = {
  // A batch may not fit where some of its frames do, so each frame is sent again immediately.
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

/** Returns `stored` if only this frame's sends can have stored it, else `duplicate`. */
export function outcomeOf({ sends, sequenceBefore }: Frame, ack: PubAck): "stored" | "duplicate" {
  const isOwnRepeat = sends > 1 && ack.seq > sequenceBefore;
  return ack.duplicate === true && !isOwnRepeat ? "duplicate" : "stored";
}

export function outcomeUnacked(frame: Frame): "refused" | "unknown" {
  return frame.isRefused ? "refused" : "unknown";
}

/** A closed list, because a cause is a metrics label. */
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

/** `parted`: the batch was split, and each frame is sent again alone. */
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
