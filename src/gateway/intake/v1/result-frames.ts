// Puts the events of a request of the newer protocol (v1) into frames of their own, however few
// they are, so that each event learns what became of its frame. The id of a frame is made of the
// request's id and of the bytes of the events in it, so a frame that is sent again is known. Without
// a request id only events with uuids are known again: other clients may send equal ones.

import type { ErrorCode } from "../../../platform/base/errors.ts";
import { SentWith } from "../../../platform/base/sent-with.ts";
import type { FrameSink } from "../../../records/frame-sink.ts";
import { recordsBytesPlanned } from "../../../records/record.ts";
import { Header, Row } from "../../../records/table.ts";
import type { FrameOutcome, FrameWaiter, Publisher } from "../../publish/port.ts";
import { ItemsHash } from "../items-hash.ts";
import { OwnFrames, ownFrameBytes } from "../own-frames.ts";
import type { PendingRequest } from "../pending-request.ts";
import type { Work } from "../work.ts";
import type { EventResults } from "./event-results.ts";

interface ResultFramesOptions {
  /**
   * The id that the client sends with the request and with each retry of it; "" where it sends
   * none.
   */
  readonly requestId: string;
  readonly results: EventResults;
}

/**
 * A frame takes no more events once it is filled to this part of `ownFrameBytes`, so that the event
 * that fills it mostly still fits into that size.
 */
const fullShare = 3 / 4;
/** About how many bytes a record takes beyond its event. */
const overheadBytes = 256;

/**
 * A client that is told of each event retries the events of some frames without those of the frames
 * between. So for what `OwnFrames` asks, only the events in a frame decide where it ends: it ends
 * behind the event that fills it, by the bytes that the client sent. It does not end because the
 * next event does not fit, as that one may not be retried; `#isFull` has the one exception.
 */
export class ResultFrames extends OwnFrames {
  readonly #requestId: string;
  readonly #results: EventResults;
  readonly #hash: ItemsHash;
  #firstIndex = 0;
  #lastIndex = 0;
  /** An event without a uuid would have the same id in the request of another client. */
  #isNamed = true;
  /** Bytes of the events as the client sent them, and `overheadBytes` for each. */
  #bytesFilled = 0;

  constructor(work: Work, publisher: Publisher, { requestId, results }: ResultFramesOptions) {
    super(work, publisher);
    this.#requestId = requestId;
    this.#results = results;
    this.#hash = new ItemsHash(work.body);
  }

  sinkFor(bytes: number, index: number, sentWith: SentWith): FrameSink {
    const { table } = this.work;
    const row = Header.Words + (index - table[Header.FirstItem]!) * Row.Words;
    const [start, end] = [table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!];
    if (this.#isFull(bytes)) this.finish();
    const frame = this.frame ?? this.#begin(bytes, index);
    this.frame = bytes <= frame.buffer.length - frame.length ? frame : this.#grown(frame, bytes);
    if (sentWith !== SentWith.Uuid && this.#requestId === "") this.#isNamed = false;
    this.#lastIndex = index;
    this.#bytesFilled += end - start + overheadBytes;
    this.#hash.add(start, end);
    return this.frame;
  }

  /**
   * The id is made of the events and not of the whole body, so that a frame is never taken for one
   * that holds other events.
   */
  protected messageIdOf({ events }: FrameSink): string {
    const name = `${this.#hash.end()}-${events}`;
    return this.#isNamed ? name : "";
  }

  protected waiter(): FrameWaiter {
    const range = { first: this.#firstIndex, last: this.#lastIndex };
    return new ResultWaiter(this.#results, this.work.pending, range);
  }

  /**
   * Whether the frame takes no more. It is also full where `bytes` more would make it too large for
   * the store, which only an event of hundreds of kilobytes does.
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
    this.#isNamed = true;
    this.#bytesFilled = 0;
    this.#hash.begin(`${lane} ${project.id} ${this.#requestId} `);
    return publisher.ownFrame(lane, project, Math.max(bytes, this.#usualCapacity()));
  }

  /** The capacity of a new frame, so that a small request takes no more memory than it may need. */
  #usualCapacity(): number {
    const { body, cost } = this.work;
    return Math.min(ownFrameBytes(this.publisher), recordsBytesPlanned(body.length, cost.events));
  }

  /** The frame copied into a larger one, with room for `bytes` more. */
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

/**
 * Hears the outcome of one frame, notes it for the events in the frame, and passes it on to the
 * pending request.
 */
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
    messageBytes: number,
  ): void {
    // The results are noted first: the next line may send the answer, which is made of them.
    this.#results.settled(this.#range, outcome, code);
    this.#pending.frameSettled(outcome, code, events, bytes, messageBytes);
  }
}
