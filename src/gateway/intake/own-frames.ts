// Frames that hold the lines of one request only, filled one after another. This class hands each
// frame over or gives it back; the subclasses decide where a frame ends and what its id is.

import type { SentWith } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { FrameWaiter, Publisher } from "../publish/port.ts";
import type { RequestFrames, Work } from "./work.ts";

/**
 * A frame of a large request holds up the frames behind it for as long as the disk takes to write
 * it. Measured beside two clients that post 19 MB batches: single events took 3.4 ms (p99 12.5)
 * behind frames of 512 KiB, and 2.3 ms (p99 9.3) behind frames of 256 KiB, which cost the batches
 * 13 %. Frames of 128 KiB gained nothing more at the p99 (9.8), and cost the batches 33 %.
 */
const ownFrameBytesMax = 262_144;

export function ownFrameBytes(publisher: Publisher): number {
  return Math.min(publisher.frameBytesMax, ownFrameBytesMax);
}

/**
 * A retry must bring the same events into the same frames: by its message id the store then knows a
 * frame that it has. So a frame must not end by the bytes that its records take. Those may differ
 * on a retry, because a record holds the client's address and times by the client's clock.
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
   * The message id of the frame as it is filled now. It comes out the same when the client sends
   * the same events again; "" for an id of this submission alone.
   */
  protected abstract messageIdOf(frame: FrameSink): string;

  protected abstract waiter(): FrameWaiter;

  /** Nothing to do: an own frame has no other request's lines, and leaves only by `submit`. */
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
      // The frame is still the request's, and `abandon` gives it back.
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
