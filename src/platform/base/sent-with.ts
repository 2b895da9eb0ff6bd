/** What identifies a sent event when it is sent again. */
export const SentWith = {
  /** A valid uuid: readers of the stream recognize a repeated event by it. */
  Uuid: 0,
  /** A timestamp, but no uuid: the gateway creates one. */
  Time: 1,
  /** Neither. */
  Neither: 2,
} as const;
export type SentWith = (typeof SentWith)[keyof typeof SentWith];

/**
 * Runs of consecutive lines, as pairs of numbers: the first line of the run, and what the events of
 * the run were sent with. Lines before the first run have uuids.
 */
export type SentWithRuns = readonly number[];
