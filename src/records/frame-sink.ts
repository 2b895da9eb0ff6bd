/**
 * An open or submitted frame. Lines are written to `buffer` from `length` on, and then committed.
 * The publisher replaces `buffer` when it grows the frame: read it anew after `sharedFrame`.
 */
export interface FrameSink {
  readonly buffer: Buffer;
  readonly length: number;
  readonly events: number;
  /** The lines of `events` more events stand in `buffer`, from `length` up to `end`. */
  commit(end: number, events: number): void;
  /** Removes the lines that no waiter has joined with yet. */
  rollback(): void;
}
