// Puts the lines of a small request into the shared frame for its project and lane, which other
// requests join too. Large requests and those of v1 have frames of their own (`own-frames.ts`).

import type { FrameSink, Publisher } from "../base/types.ts";
import type { RequestFrames, Work } from "./work.ts";

export class SharedFrames implements RequestFrames {
  readonly #work: Work;
  readonly #publisher: Publisher;
  #frame: FrameSink | undefined = undefined;
  /** The most bytes that the lines take which are not handed over yet. */
  #bytesMax = 0;

  constructor(work: Work, publisher: Publisher) {
    this.#work = work;
    this.#publisher = publisher;
  }

  sinkFor(bytes: number): FrameSink {
    const publisher = this.#publisher;
    const { lane, project } = this.#work;
    if (this.#frame !== undefined && this.#bytesMax + bytes > publisher.frameBytesMax)
      this.finish();
    if (this.#frame === undefined || this.#frame.buffer.length - this.#frame.length < bytes)
      this.#frame = publisher.sharedFrame(lane, project, bytes);
    this.#bytesMax += bytes;
    return this.#frame;
  }

  /**
   * Other requests may have lines in the frame too, so only the lines of this request since its
   * last turn ended are taken back.
   */
  abandon(): void {
    this.#frame?.rollback();
    this.#frame = undefined;
  }

  endTurn(): void {
    this.finish();
  }

  finish(): void {
    if (this.#frame === undefined) return;
    const { pending, exchange } = this.#work;
    this.#bytesMax = 0;
    pending.expectFrame();
    try {
      this.#publisher.join(this.#frame, pending, exchange.deadlineMs);
    } catch (bug) {
      pending.frameNotTaken();
      throw bug;
    }
    this.#frame = undefined;
  }
}
