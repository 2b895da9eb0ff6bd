// Computes the time of a line for everything that depends on time within a stream: duplicate
// detection and spikes. Billing always uses `received_at`.

import type { StoredLine } from "./line.ts";

/**
 * Maximum milliseconds from the storage of a frame to a credible `received_at`. The limit exceeds
 * the difference of synchronised clocks and the time that frames wait.
 */
const aheadMsMax = 3_600_000;

/**
 * Returns the line's `received_at`. If it is over an hour after the storage of the frame, returns
 * the storage time: otherwise one gateway whose clock is a year ahead would stop everything that
 * waits for time to pass.
 */
export function recordMs({ receivedAtMs, frame }: StoredLine): number {
  return receivedAtMs - frame.storedAtMs > aheadMsMax ? frame.storedAtMs : receivedAtMs;
}
