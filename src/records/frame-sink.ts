/**
 * An open or submitted frame. Lines are written to `buffer` from `length` on, and then committed.
 * The publisher replaces `buffer` when it grows the frame: read the property again after
 * `sharedFrame`.
 */
export interface FrameSink {
  readonly buffer: Buffer;
  readonly length: number;
  readonly events: number;
  /** `events` more lines are in `buffer`, from `length` up to `end`. */
  commit(end: number, events: number): void;
  /** Removes the lines that belong to no waiter yet. */
  rollback(): void;
}
