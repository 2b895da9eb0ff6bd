// Frames of their own for the events of a request of the newer protocol (v1), however few they are,
// so that each event learns what became of its frame, and a frame that comes again is known: its id
// is made of the request's and of the bytes of the events in it.

import type { ErrorCode } from "../../base/errors.ts";
import type { FrameOutcome, FrameSink, FrameWaiter, Publisher } from "../../base/types.ts";
import { recordsBytesMax } from "../../events/record.ts";
import { Header, Row } from "../../scan/table.ts";
import { ItemsHash } from "../items-hash.ts";
import { OwnFrames, ownFrameBytes } from "../own-frames.ts";
import type { PendingRequest } from "../pending-request.ts";
import type { Work } from "../work.ts";
import type { EventResults } from "./event-results.ts";

export interface ResultFramesOptions {
  /** The same over retries; "" where the client has none. */
  readonly requestId: string;
  readonly results: EventResults;
}

/**
 * A frame takes no more once the events in it come to this part of what frames of large requests
 * hold, so that the last mostly fits into that.
 */
const fullShare = 3 / 4;
/** About what a record takes beyond its event. */
const overheadBytes = 256;

/**
 * A client that hears of each event retries the events of some frames and not of others, without
 * what was between them. They must come into the same frames then, so the events in a frame alone
 * decide where it ends: with the event that fills it, and not before one that does not fit, which
 * may not come again. What counts are the bytes that the client sent, because a line also has its
 * address.
 */
export class ResultFrames extends OwnFrames {
  readonly #requestId: string;
  readonly #results: EventResults;
  readonly #hash: ItemsHash;
  #firstIndex = 0;
  #lastIndex = 0;
  /** Bytes of the body, and for each event something on top. */
  #bytesFilled = 0;

  constructor(work: Work, publisher: Publisher, { requestId, results }: ResultFramesOptions) {
    super(work, publisher);
    this.#requestId = requestId;
    this.#results = results;
    this.#hash = new ItemsHash(work.body);
  }

  sinkFor(bytes: number, index: number): FrameSink {
    const { table } = this.work;
    const row = Header.Words + (index - table[Header.FirstItem]!) * Row.Words;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    if (this.#isFull(bytes)) this.finish();
    const frame = this.frame ?? this.#begin(bytes, index);
    this.frame = bytes <= frame.buffer.length - frame.length ? frame : this.#grown(frame, bytes);
    this.#lastIndex = index;
    this.#bytesFilled += end - start + overheadBytes;
    this.#hash.add(start, end);
    return this.frame;
  }

  /**
   * Made of the events, not of the whole body, so that a frame is never taken for one of other
   * events.
   */
  protected messageIdOf({ events }: FrameSink): string {
    return `${this.#hash.end()}-${events}`;
  }

  protected waiter(): FrameWaiter {
    const range = { first: this.#firstIndex, last: this.#lastIndex };
    return new ResultWaiter(this.#results, this.work.pending, range);
  }

  /**
   * Whether the frame takes no more. It is full too where the store takes no frame with `bytes`
   * more, which only an event of hundreds of kilobytes comes to.
   */
  #isFull(bytes: number): boolean {
    const { publisher } = this;
    if (this.frame === undefined) return false;
    return (
      this.#bytesFilled >= ownFrameBytes(publisher) * fullShare ||
      this.frame.length + bytes > publisher.frameBytesMax
    );
  }

  #begin(bytes: number, index: number): FrameSink {
    const { publisher } = this;
    const { lane, project } = this.work;
    this.#firstIndex = index;
    this.#bytesFilled = 0;
    this.#hash.begin(`${lane} ${project.id} ${this.#requestId} `);
    return publisher.ownFrame(lane, project, Math.max(bytes, this.#usualCapacity()));
  }

  /** A small request takes no more memory than it may need. */
  #usualCapacity(): number {
    const { body, cost } = this.work;
    return Math.min(ownFrameBytes(this.publisher), recordsBytesMax(body.length, cost.events));
  }

  /** With room for `bytes` more. */
  #grown(frame: FrameSink, bytes: number): FrameSink {
    const { publisher } = this;
    const { lane, project } = this.work;
    const capacity = Math.max(
      frame.length + bytes,
      Math.min(2 * frame.buffer.length, publisher.frameBytesMax),
    );
    const grown = publisher.ownFrame(lane, project, capacity);
    frame.buffer.copy(grown.buffer, 0, 0, frame.length);
    grown.commit(frame.length, frame.events);
    publisher.discard(frame);
    return grown;
  }
}

/** Hears of one frame, for the events in it, and passes it on. */
class ResultWaiter implements FrameWaiter {
  readonly #results: EventResults;
  readonly #pending: PendingRequest;
  readonly #range: { readonly first: number; readonly last: number };

  constructor(
    results: EventResults,
    pending: PendingRequest,
    range: { first: number; last: number },
  ) {
    this.#results = results;
    this.#pending = pending;
    this.#range = range;
  }

  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
  ): void {
    // The results come first, because the pending request may answer.
    this.#results.settled(this.#range, outcome, code);
    this.#pending.frameSettled(outcome, code, events, bytes);
  }
}
