/**
 * A frame to which lines are written. The caller writes to `buffer` from `length` on, and then
 * calls `commit`. `sharedFrame` may replace `buffer`.
 */
export interface FrameSink {
  readonly buffer: Buffer;
  readonly length: number;
  readonly events: number;
  /** Adds `events` lines. They must be in `buffer` from `length` to `end`. */
  commit(end: number, events: number): void;
  rollback(): void;
}
