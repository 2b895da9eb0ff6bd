// The frames of a large request, whose lines may fill several frames. If all events of the body
// have uuids, a frame's message id is the same whenever the client sends the body again. Otherwise
// the id is the same only if an earlier attempt from the same address failed.

import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import type { RetryMemory } from "../../platform/base/retry-memory.ts";
import { SentWith } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import { Header } from "../../records/table.ts";
import type { FrameWaiter, Publisher } from "../publish/port.ts";
import type { LoopShare } from "./loop-share.ts";
import { OwnFrames, ownFrameBytes } from "./own-frames.ts";
import type { NamedBody, Work } from "./work.ts";

export class BodyFrames extends OwnFrames {
  readonly #bodyId: string;
  readonly #failed: RetryMemory<string>;
  /** The id of this attempt; undefined until there is an event without a uuid. */
  #sendingId: string | undefined = undefined;
  #haveUuids = true;
  #firstIndex = 0;
  #lastIndex = 0;
  /**
   * Upper bound of the frame's line bytes. The frame ends by this bound, not by the actual bytes;
   * see `OwnFrames`.
   */
  #bytesPlanned = 0;

  constructor(work: Work, publisher: Publisher, { id, failed }: NamedBody) {
    super(work, publisher);
    this.#bodyId = id;
    this.#failed = failed;
  }

  sinkFor(bytes: number, index: number, sentWith: SentWith): FrameSink {
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
    if (sentWith !== SentWith.Uuid) this.#haveUuids = false;
    this.#lastIndex = index;
    this.#bytesPlanned += bytes;
    return this.frame;
  }

  /**
   * Returns an id with the first and the last item, not just the number of the frame. A retry may
   * be cut into frames at other items (another max_payload, a longer address), and a frame must
   * never be mistaken for one with other events. If an event has no uuid, the id contains the
   * attempt too. Two equal batches without uuids may both be intended. If the second one counted as
   * a retry, its events would be lost in spite of a 200.
   */
  protected messageIdOf({ events }: FrameSink): string {
    const id = `${this.#bodyId}-${this.#firstIndex}-${this.#lastIndex}-${events}`;
    return this.#haveUuids ? id : `${id}-${this.#sending()}`;
  }

  /**
   * Returns the id of this attempt, or that of an earlier failed one. If the attempt fails again,
   * it is remembered for the full time again, because it may have stored some of its frames.
   */
  #sending(): string {
    if (this.#sendingId === undefined) {
      const { pending } = this.work;
      const key = `${this.#bodyId} ${pending.senderAddress}`;
      const sendingId = this.#failed.take(key) ?? randomBytes(9).toString("base64url");
      this.#sendingId = sendingId;
      pending.whenEnded((isStored) => {
        if (!isStored) this.#failed.remember(key, sendingId);
      });
    }
    return this.#sendingId;
  }

  protected waiter(): FrameWaiter {
    return this.work.pending;
  }
}

/** Number of bytes that are hashed per slice, which takes some 0.6 ms. */
const hashedBytesPerSlice = 1_048_576;

/**
 * Returns an id that is unique to a body: a hash, computed in slices, of the lane, the project and
 * the body's bytes. The value of `sent_at` is excluded, because some clients change it each time
 * they send the same events.
 */
export async function bodyIdOf(
  { lane, project, body, table }: Work,
  share: LoopShare,
): Promise<string> {
  const hash = createHash("sha256");
  const [start, end] = [table[Header.SentAtStart]!, table[Header.SentAtEnd]!];
  for (const piece of [
    Buffer.from(`${lane} ${project.id} `),
    body.subarray(0, start),
    body.subarray(end),
  ]) {
    for (let at = 0; at < piece.length; at += hashedBytesPerSlice) {
      await share.slice(() => void hash.update(piece.subarray(at, at + hashedBytesPerSlice)));
    }
  }
  return hash.digest("base64url");
}
