// The counters that the publisher updates: plain additions, a few per frame, none per event.
// admin/metrics/ implements them.

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
 * How an atomic batch ended. `stored`: one acknowledgement covers all its frames. `parted`: it was
 * not acknowledged and was split, so its frames are sent again, each alone.
 */
export const batchOutcomes = ["stored", "parted"] as const;
export type BatchOutcome = (typeof batchOutcomes)[number];

export interface PublishMetrics {
  /** Once per frame, at its first send. `bytes` is the payload. */
  frameSent(lane: Lane, events: number, bytes: number): void;
  /** Once per acknowledged frame. `seconds` are counted from its first send. */
  frameAcked(lane: Lane, seconds: number): void;
  frameRetried(): void;
  /** Once per atomic batch, at its end. */
  batchEnded(outcome: BatchOutcome, frames: number): void;
  ackFailed(cause: AckFailureCause): void;
  /** A frame was acknowledged, but the stream had it already. */
  duplicateFrame(lane: Lane, events: number): void;
}
