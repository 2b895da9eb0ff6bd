/** The fields that identify an event if its client sends it again. */
export const SentWith = {
  /** Readers of the stream recognize a repeated event by its valid uuid. */
  Uuid: 0,
  /** A timestamp without a uuid, which the gateway creates. */
  Time: 1,
  Neither: 2,
} as const;
export type SentWith = (typeof SentWith)[keyof typeof SentWith];

/** Each pair is a line and the `SentWith` from it on. Lines before the first pair have uuids. */
export type SentWithRuns = readonly number[];
