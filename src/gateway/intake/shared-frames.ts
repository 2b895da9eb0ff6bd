// Puts the lines of a small request into the shared frame for its project and lane, which other
// requests join too. Large requests and those of v1 have frames of their own (`own-frames.ts`).

import { SentWith } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Publisher } from "../publish/port.ts";
import type { RequestFrames, Work } from "./work.ts";

export class SharedFrames implements RequestFrames {
  readonly #work: Work;
  readonly #publisher: Publisher;
  #frame: FrameSink | undefined = undefined;
  /** The most bytes that the lines take which are not handed over yet. */
  #bytesMax = 0;
  #lines = 0;
  /** What the events of these lines were sent with; undefined while all have uuids. */
  #runs: number[] | undefined = undefined;
  #sentWith: SentWith = SentWith.Uuid;

  constructor(work: Work, publisher: Publisher) {
    this.#work = work;
    this.#publisher = publisher;
  }

  sinkFor(bytes: number, _index: number, sentWith: SentWith): FrameSink {
    const publisher = this.#publisher;
    const { lane, project } = this.#work;
    if (this.#frame !== undefined && this.#bytesMax + bytes > publisher.frameBytesMax)
      this.finish();
    if (this.#frame === undefined || this.#frame.buffer.length - this.#frame.length < bytes)
      this.#frame = publisher.sharedFrame(lane, project, bytes);
    this.#bytesMax += bytes;
    if (sentWith !== this.#sentWith) {
      this.#sentWith = sentWith;
      if (this.#runs === undefined) this.#runs = [this.#lines, sentWith];
      else this.#runs.push(this.#lines, sentWith);
    }
    this.#lines++;
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
    const uuidless = this.#runs;
    this.#bytesMax = 0;
    this.#lines = 0;
    this.#runs = undefined;
    this.#sentWith = SentWith.Uuid;
    pending.expectFrame();
    try {
      this.#publisher.join(this.#frame, pending, exchange.deadlineMs, uuidless);
    } catch (bug) {
      pending.frameNotTaken();
      throw bug;
    }
    this.#frame = undefined;
  }
}
