// Writes the lines of a small request to the shared frame of its project and lane, which other
// requests join too. Large requests and those of v1 have their own frames (`own-frames.ts`).

import { SentWith } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Publisher } from "../publish/port.ts";
import type { RequestFrames, Work } from "./work.ts";

export class SharedFrames implements RequestFrames {
  readonly #work: Work;
  readonly #publisher: Publisher;
  #frame: FrameSink | undefined = undefined;
  /** Upper bound of the bytes of the lines that are not handed over yet. */
  #bytesMax = 0;
  #lines = 0;
  /**
   * The events without a uuid among the lines that are not handed over yet; undefined while all
   * have uuids.
   */
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
   * Removes only the lines that were added since the last hand-over, because other requests may
   * have lines in the frame too.
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
