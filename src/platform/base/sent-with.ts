export const SentWith = {
  Uuid: 0,
  Time: 1,
  Neither: 2,
} as const;
export type SentWith = (typeof SentWith)[keyof typeof SentWith];

/**
 * Pairs of a line number and a `SentWith`, which applies from this line to the next pair. All
 * events before the first pair have uuids.
 */
export type SentWithRuns = readonly number[];
