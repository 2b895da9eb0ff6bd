// Frames of a large request, which would fill frames by itself: under ids that come out the same
// when the client sends the same body again, if its events have ids too.

import type { FrameSink, FrameWaiter, Publisher } from "../base/types.ts";
import { OwnFrames, ownFrameBytes } from "./own-frames.ts";
import type { Work } from "./work.ts";

export class BodyFrames extends OwnFrames {
  readonly #bodyId: string;
  #haveUuids = true;
  #firstIndex = 0;
  #lastIndex = 0;
  /**
   * What its lines may take at most. What they do take may differ when the body is sent again, and
   * the frame is to be cut at the same item then.
   */
  #bytesPlanned = 0;

  /** `bodyId` names project, lane and body, and nothing else in the stream. */
  constructor(work: Work, publisher: Publisher, bodyId: string) {
    super(work, publisher);
    this.#bodyId = bodyId;
  }

  sinkFor(bytes: number, index: number, hasUuid: boolean): FrameSink {
    const { publisher } = this;
    const { lane, project } = this.work;
    if (this.frame !== undefined && this.#bytesPlanned + bytes > ownFrameBytes(publisher))
      this.finish();
    if (this.frame === undefined) {
      this.frame = publisher.ownFrame(lane, project, Math.max(bytes, ownFrameBytes(publisher)));
      this.#bytesPlanned = 0;
      this.#firstIndex = index;
      this.#haveUuids = true;
    }
    if (!hasUuid) this.#haveUuids = false;
    this.#lastIndex = index;
    this.#bytesPlanned += bytes;
    return this.frame;
  }

  /**
   * Names the items, not just a number: should a retry be cut into frames elsewhere (another
   * max_payload, a longer address), no frame is taken for one that held other events. Two equal
   * batches without uuids may both be meant: one of them taken for a retry would be lost behind a
   * 200.
   */
  protected messageIdOf({ events }: FrameSink): string {
    return this.#haveUuids
      ? `${this.#bodyId}-${this.#firstIndex}-${this.#lastIndex}-${events}`
      : "";
  }

  protected waiter(): FrameWaiter {
    return this.work.pending;
  }
}
