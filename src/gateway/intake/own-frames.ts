// Frames with the lines of one request only, filled one after another. This class submits or
// discards each frame. The subclasses decide where a frame ends and what its id is.

import type { SentWith } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { FrameWaiter, Publisher } from "../publish/port.ts";
import type { RequestFrames, Work } from "./work.ts";

/**
 * Maximum bytes of an own frame. A frame of a large request delays later frames for as long as the
 * disk takes to write it. It was measured with two clients that post 19 MB batches, as the time of
 * single events:
 * - 512 KiB: 3.4 ms, p99 12.5 ms
 * - 256 KiB: 2.3 ms, p99 9.3 ms; the batches took 13 % longer
 * - 128 KiB: p99 9.8 ms; the batches took 33 % longer
 */
const ownFrameBytesMax = 262_144;

export function ownFrameBytes(publisher: Publisher): number {
  return Math.min(publisher.frameBytesMax, ownFrameBytesMax);
}

/**
 * Own frames of a request. A retry must put the same events into the same frames, so that the store
 * recognizes a stored frame by its message id. So the end of a frame must not depend on the bytes
 * of its records. These may differ on a retry, because a record contains the client's address and
 * times by the client's clock.
 */
export abstract class OwnFrames implements RequestFrames {
  protected readonly work: Work;
  protected readonly publisher: Publisher;
  /** The frame that is being filled. */
  protected frame: FrameSink | undefined = undefined;

  constructor(work: Work, publisher: Publisher) {
    this.work = work;
    this.publisher = publisher;
  }

  abstract sinkFor(bytes: number, index: number, sentWith: SentWith): FrameSink;

  /**
   * Returns the message id of the frame with its current content; "" for an id that is unique to
   * this submission. The id is the same when the client sends the same events again.
   */
  protected abstract messageIdOf(frame: FrameSink): string;

  protected abstract waiter(): FrameWaiter;

  /**
   * Does nothing, because an own frame has no other request's lines, and is sent only after
   * `submit`.
   */
  endTurn(): void {}

  finish(): void {
    const { frame } = this;
    if (frame === undefined) return;
    const { pending, exchange } = this.work;
    const { length } = frame;
    pending.expectFrame(length);
    try {
      this.publisher.submit(frame, this.messageIdOf(frame), this.waiter(), exchange.deadlineMs);
    } catch (bug) {
      // The request still owns the frame, and `abandon` discards it.
      pending.frameNotTaken(length);
      throw bug;
    }
    this.frame = undefined;
  }

  abandon(): void {
    if (this.frame !== undefined) this.publisher.discard(this.frame);
    this.frame = undefined;
  }
}
