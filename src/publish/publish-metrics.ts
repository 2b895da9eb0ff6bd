// What the publisher reports: plain additions, a few per frame, none per event. Implemented by
// admin/metrics/.

import type { Lane } from "../base/types.ts";

/** Why a send was not acknowledged. The list is closed, because a cause is a metrics label. */
export const ackFailureCauses = [
  "timeout",
  "disconnected",
  "no_responders",
  "store_full",
  "refused",
  "in_flight",
  "foreign",
  "malformed",
] as const;
export type AckFailureCause = (typeof ackFailureCauses)[number];

export interface PublishMetrics {
  /** Once per frame, at its first send. `bytes` is the payload. */
  frameSent(lane: Lane, events: number, bytes: number): void;
  /** Once per acknowledged frame. `seconds` are counted from its first send. */
  frameAcked(lane: Lane, seconds: number): void;
  frameRetried(): void;
  ackFailed(cause: AckFailureCause): void;
  /** A frame was acknowledged, but the stream had it already. */
  duplicateFrame(lane: Lane, events: number): void;
}
