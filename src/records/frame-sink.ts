/**
 * A frame that receives lines. Callers write lines to `buffer` from `length` on, and then commit
 * them. `sharedFrame` may replace `buffer`.
 */
export interface FrameSink {
  readonly buffer: Buffer;
  readonly length: number;
  readonly events: number;
  /** Adds `events` lines, which are in `buffer` from `length` to `end`. */
  commit(end: number, events: number): void;
  /** Removes the lines that do not belong to a request yet. */
  rollback(): void;
}
