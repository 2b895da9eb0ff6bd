/**
 * Callers write lines to `buffer` from `length` on, and then commit them. `sharedFrame` may replace
 * `buffer`.
 */
export interface FrameSink {
  readonly buffer: Buffer;
  readonly length: number;
  readonly events: number;
  /** Adds `events` lines, which are in `buffer` from `length` to `end`. */
  commit(end: number, events: number): void;
  rollback(): void;
}
