/**
 * An open or submitted frame. Lines are written to `buffer` from `length` on, and then committed.
 * `sharedFrame` may replace `buffer`.
 */
export interface FrameSink {
  readonly buffer: Buffer;
  readonly length: number;
  readonly events: number;
  /** Adds `events` lines, which are in `buffer` from `length` to `end`. */
  commit(end: number, events: number): void;
  /** Removes the lines that no waiter owns yet. */
  rollback(): void;
}
