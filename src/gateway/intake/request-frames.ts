import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import type { RetryMemory } from "../../platform/base/retry-memory.ts";
import { SentWith, type SentWithRuns } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import { Header } from "../../records/table.ts";
import type { FrameWaiter, Publisher } from "../publish/port.ts";
import type { LoopShare } from "./loop-share.ts";
import type { NamedBody, RequestFrames, Work } from "./work.ts";

/**
 * Other frames must wait while a request's own frame is written, so the size is limited. With 256
 * KiB, single events took 2.3 ms while 19 MB batches were written. With 512 KiB, they took 3.4 ms.
 * With 128 KiB, they were not faster.
 */
const ownFrameBytesMax = 262_144;

export function ownFrameBytes(publisher: Publisher): number {
  return Math.min(publisher.frameBytesMax, ownFrameBytesMax);
}

/**
 * The frames of one large request. A retry must put the same events into the same frames. So the
 * end of a frame must not depend on its records, because these contain the client's address and
 * timestamps.
 */
export abstract class OwnFrames implements RequestFrames {
  protected readonly work: Work;
  protected readonly publisher: Publisher;
  protected frame: FrameSink | undefined = undefined;

  constructor(work: Work, publisher: Publisher) {
    this.work = work;
    this.publisher = publisher;
  }

  abstract sinkFor(bytes: number, index: number, sentWith: SentWith): FrameSink;

  /** The id must be the same when the client sends the events again. "" requests a unique id. */
  protected abstract messageIdOf(frame: FrameSink): string;

  protected abstract waiter(): FrameWaiter;

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

export class BodyFrames extends OwnFrames {
  readonly #bodyId: string;
  readonly #failed: RetryMemory<string>;
  #sendingId: string | undefined = undefined;
  #haveUuids = true;
  #firstIndex = 0;
  #lastIndex = 0;
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
   * The id contains the first and last index, because a retry may be split at different items.
   * Without uuids, the id also contains an id of the attempt, because a client may intend to send
   * two equal batches.
   */
  protected messageIdOf({ events }: FrameSink): string {
    const id = `${this.#bodyId}-${this.#firstIndex}-${this.#lastIndex}-${events}`;
    return this.#haveUuids ? id : `${id}-${this.#sending()}`;
  }

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

/** Hashing this number of bytes takes about 0.6 ms. */
const hashedBytesPerSlice = 1_048_576;

/**
 * Returns a hash of the lane, the project, the version of its rules and the body. The hash excludes
 * `sent_at`, because a retry changes it. It includes the version, because a retry under other rules
 * may store other events: its frames must not be taken for those of the first attempt.
 */
export async function bodyIdOf(
  { lane, project, rules, body, table }: Work,
  share: LoopShare,
): Promise<string> {
  const hash = createHash("sha256");
  const version = rules === undefined ? "" : `${rules.version} `;
  const [start, end] = [table[Header.SentAtStart]!, table[Header.SentAtEnd]!];
  for (const piece of [
    Buffer.from(`${lane} ${project.id} ${version}`),
    body.subarray(0, start),
    body.subarray(end),
  ]) {
    for (let at = 0; at < piece.length; at += hashedBytesPerSlice) {
      await share.slice(() => void hash.update(piece.subarray(at, at + hashedBytesPerSlice)));
    }
  }
  return hash.digest("base64url");
}

/** The runs of requests whose events are all alike; undefined if all have uuids. */
const runsOfAll: Readonly<Record<SentWith, SentWithRuns | undefined>> = {
  [SentWith.Uuid]: undefined,
  [SentWith.Time]: [0, SentWith.Time],
  [SentWith.Neither]: [0, SentWith.Neither],
};

export class SharedFrames implements RequestFrames {
  readonly #work: Work;
  readonly #publisher: Publisher;
  #frame: FrameSink | undefined = undefined;
  #bytesMax = 0;
  #lines = 0;
  /** The runs of the lines since the last `finish`; undefined while all lines are alike. */
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
    if (sentWith !== this.#sentWith && this.#lines > 0) {
      this.#runs ??= [0, this.#sentWith];
      this.#runs.push(this.#lines, sentWith);
    }
    this.#sentWith = sentWith;
    this.#lines++;
    return this.#frame;
  }

  /** Removes only the last lines, because earlier ones may belong to other requests. */
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
    const uuidless = this.#runs ?? runsOfAll[this.#sentWith];
    this.#bytesMax = 0;
    this.#lines = 0;
    this.#runs = undefined;
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
