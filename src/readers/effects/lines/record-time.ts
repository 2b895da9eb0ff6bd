// The time of a line for everything that depends on time within a stream: duplicate detection and
// spikes. Billing uses `received_at` alone.

import type { StoredLine } from "./line.ts";

/** More than synchronised clocks differ and frames wait: a later time is wrong. */
const aheadMsMax = 3_600_000;

/**
 * The line's `received_at`; if that is over an hour after its frame was stored, the time of
 * storage. Otherwise one gateway whose clock is a year ahead would stop everything that waits for
 * time to pass.
 */
export function recordMs({ receivedAtMs, frame }: StoredLine): number {
  return receivedAtMs - frame.storedAtMs > aheadMsMax ? frame.storedAtMs : receivedAtMs;
}
