export const SentWith = {
  Uuid: 0,
  Time: 1,
  Neither: 2,
} as const;
export type SentWith = (typeof SentWith)[keyof typeof SentWith];

/** Pairs of a line number and the `SentWith` from there on. Lines before the first have uuids. */
export type SentWithRuns = readonly number[];
