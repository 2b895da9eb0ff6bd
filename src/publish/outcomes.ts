// What is said of a frame at its end, by what was answered to its sends.

import type { Frame } from "./frame.ts";
import type { PubAck } from "./pub-ack.ts";

/**
 * `duplicate` where an earlier request had stored the frame. Where it was an earlier send of this
 * frame that got no answer, the frame is `stored`.
 */
export function outcomeOf({ sends, sequenceBefore }: Frame, ack: PubAck): "stored" | "duplicate" {
  const isOwnRepeat = sends > 1 && ack.seq > sequenceBefore;
  return ack.duplicate === true && !isOwnRepeat ? "duplicate" : "stored";
}

/**
 * What to say of a frame without an acknowledgement. `refused`: it is certainly not stored.
 * `unknown`: a send that was not answered with a refusal may have stored it.
 */
export function outcomeUnacked(frame: Frame): "refused" | "unknown" {
  return frame.isRefused ? "refused" : "unknown";
}
