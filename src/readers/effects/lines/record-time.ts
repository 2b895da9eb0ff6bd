import type { StoredLine } from "./line.ts";

/** More than the difference of synchronised clocks plus the time that frames wait. */
const aheadMsMax = 3_600_000;

/**
 * Returns the time of a line for duplicate detection and spikes: `received_at`, or the storage time
 * of the frame if `received_at` is over an hour later. Otherwise one gateway whose clock is a year
 * ahead would stop everything that waits for time to pass.
 */
export function recordMs({ receivedAtMs, frame }: StoredLine): number {
  return receivedAtMs - frame.storedAtMs > aheadMsMax ? frame.storedAtMs : receivedAtMs;
}
