/** The fields that identify an event if its client sends it again. */
export const SentWith = {
  /** A valid uuid, by which readers recognize a repeated event. */
  Uuid: 0,
  /** A timestamp but no uuid. The gateway creates a uuid. */
  Time: 1,
  Neither: 2,
} as const;
export type SentWith = (typeof SentWith)[keyof typeof SentWith];

/** Pairs of a line number and the `SentWith` from there on. Lines before the first have uuids. */
export type SentWithRuns = readonly number[];
