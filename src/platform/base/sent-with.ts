/** What an event was sent with that tells it from other events. */
export const SentWith = {
  /** A valid uuid: readers of the stream know a second sending by it. */
  Uuid: 0,
  /** No uuid, so the gateway creates one; a timestamp. */
  Time: 1,
  /** Neither. */
  Neither: 2,
} as const;
export type SentWith = (typeof SentWith)[keyof typeof SentWith];

/**
 * What the events of consecutive lines were sent with: the number of a line, and what the events
 * from that line on were sent with; then the same for the next run. Lines before the first run have
 * uuids.
 */
export type SentWithRuns = readonly number[];
