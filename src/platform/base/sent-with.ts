/** The fields that identify an event if its client sends it again. */
export const SentWith = {
  /** A valid uuid. Readers of the stream recognize a repeated event by its uuid. */
  Uuid: 0,
  /** A timestamp without a uuid. The gateway creates the uuid. */
  Time: 1,
  /** No uuid and no timestamp. */
  Neither: 2,
} as const;
export type SentWith = (typeof SentWith)[keyof typeof SentWith];

/**
 * Runs of consecutive lines, as pairs of numbers: the first line of the run, and the `SentWith` of
 * all events in the run. Lines before the first run have uuids.
 */
export type SentWithRuns = readonly number[];
