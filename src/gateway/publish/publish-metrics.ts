// The counters that the publisher updates: a few additions per frame, none per event. Implemented
// in admin/metrics/.

import type { Lane } from "../../platform/base/lane.ts";

/** Why a send was not acknowledged. The list is closed, because a cause is a metrics label. */
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

/**
 * How an atomic batch ended. `stored`: one acknowledgement covers all its frames. `parted`: the
 * batch was not acknowledged and was split, so its frames are sent again, each alone.
 */
export const batchOutcomes = ["stored", "parted"] as const;
export type BatchOutcome = (typeof batchOutcomes)[number];

export interface PublishMetrics {
  /** Counts a frame at its first send. `bytes`: the size of its payload. */
  frameSent(lane: Lane, events: number, bytes: number): void;
  /** Counts an acknowledged frame. `seconds`: the time since its first send. */
  frameAcked(lane: Lane, seconds: number): void;
  frameRetried(): void;
  /** Counts an atomic batch at its end. */
  batchEnded(outcome: BatchOutcome, frames: number): void;
  ackFailed(cause: AckFailureCause): void;
  /** Counts an acknowledged frame that the stream already had. */
  duplicateFrame(lane: Lane, events: number): void;
}
