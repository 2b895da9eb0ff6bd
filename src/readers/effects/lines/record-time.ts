// When a line came, for what goes by time in a stream: the memory of duplicates, and spikes. What
// is billed goes by `received_at` alone.

import type { StoredLine } from "./line.ts";

/** More than clocks that are kept differ, and frames wait: who is that far ahead is wrong. */
const aheadMsMax = 3_600_000;

/**
 * The line's `received_at`; but where that is over an hour after its frame was stored, the time of
 * storing. Else one gateway whose clock is a year ahead would stop all that waits for time to pass.
 */
export function recordMs({ receivedAtMs, frame }: StoredLine): number {
  return receivedAtMs - frame.storedAtMs > aheadMsMax ? frame.storedAtMs : receivedAtMs;
}
