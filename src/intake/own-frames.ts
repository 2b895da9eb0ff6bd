// Frames that only one request has lines in, one after another: how each is handed over or given
// back. Where a frame ends, and what its id is, the subclasses say.

import type { FrameSink, FrameWaiter, Publisher } from "../base/types.ts";
import type { RequestFrames, Work } from "./work.ts";

/**
 * A frame of a large request holds up what comes behind it for as long as the disk takes. Measured
 * beside two clients that post 19 MB batches: single events took 3.4 ms (p99 12.5) behind frames of
 * 512 KiB and 2.3 ms (9.3) behind these, which cost the batches 13 %; half of that gained nothing
 * more at the p99 (9.8) and cost them 33 %.
 */
const ownFrameBytesMax = 262_144;

export function ownFrameBytes(publisher: Publisher): number {
  return Math.min(publisher.frameBytesMax, ownFrameBytesMax);
}

export abstract class OwnFrames implements RequestFrames {
  protected readonly work: Work;
  protected readonly publisher: Publisher;
  /** The one that is being filled. */
  protected frame: FrameSink | undefined = undefined;

  constructor(work: Work, publisher: Publisher) {
    this.work = work;
    this.publisher = publisher;
  }

  abstract sinkFor(bytes: number, index: number, hasUuid: boolean): FrameSink;

  /**
   * The id of the frame as it is now: the same when the client sends its events again, or "" for
   * one of this submission alone.
   */
  protected abstract messageIdOf(frame: FrameSink): string;

  protected abstract waiter(): FrameWaiter;

  /** Nobody else has lines in an own frame, and it cannot leave before it is submitted. */
  endTurn(): void {}

  finish(): void {
    const { frame } = this;
    if (frame === undefined) return;
    this.frame = undefined;
    const { pending, exchange } = this.work;
    pending.expectFrame(frame.length);
    this.publisher.submit(frame, this.messageIdOf(frame), this.waiter(), exchange.deadlineMs);
  }

  abandon(): void {
    if (this.frame !== undefined) this.publisher.discard(this.frame);
    this.frame = undefined;
  }
}
