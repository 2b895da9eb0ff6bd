// Writes the events of a v1 request to frames that contain no other events. So the outcome of each
// event is known.

import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import type { ErrorCode } from "../../../platform/base/errors.ts";
import { SentWith } from "../../../platform/base/sent-with.ts";
import type { RequestSpan } from "../../../platform/base/tracing.ts";
import type { FrameSink } from "../../../records/frame-sink.ts";
import { recordsBytesPlanned } from "../../../records/record.ts";
import { Header, Row } from "../../../records/table.ts";
import type { FrameOutcome, FrameWaiter, Publisher } from "../../publish/port.ts";
import type { PendingRequest } from "../pending-request.ts";
import { OwnFrames, ownFrameBytes } from "../request-frames.ts";
import type { Work } from "../work.ts";
import type { EventResults } from "./event-results.ts";

interface ResultFramesOptions {
  readonly requestId: string;
  readonly results: EventResults;
}

/** A frame that is filled to this share counts as full. So the last event usually fits into it. */
const fullShare = 3 / 4;
const overheadBytes = 256;

/**
 * A client may retry only the events of some frames. So the end of a frame must depend only on the
 * events in it, and is determined by the number of bytes that the client sent.
 */
export class ResultFrames extends OwnFrames {
  readonly #requestId: string;
  readonly #results: EventResults;
  readonly #hash: ItemsHash;
  #firstIndex = 0;
  #lastIndex = 0;
  /**
   * This flag is true if an earlier frame with the same id can only be an earlier attempt. If an
   * event has no uuid and the request has no id, an equal frame may also be from another client.
   */
  #isNamed = true;
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

  protected messageIdOf({ events }: FrameSink): string {
    const name = `${this.#hash.end()}-${events}`;
    return this.#isNamed ? name : "";
  }

  protected waiter(): FrameWaiter {
    const range = { first: this.#firstIndex, last: this.#lastIndex };
    return new ResultWaiter(this.#results, this.work.pending, range);
  }

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
    const { lane, project, body, cost } = this.work;
    const planned = recordsBytesPlanned(body.length, cost.events);
    this.#firstIndex = index;
    this.#isNamed = true;
    this.#bytesFilled = 0;
    this.#hash.begin(`${lane} ${project.id} ${this.#requestId} `);
    return publisher.ownFrame(
      lane,
      project,
      Math.max(bytes, Math.min(ownFrameBytes(publisher), planned)),
    );
  }

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

  get span(): RequestSpan | undefined {
    return this.#pending.span;
  }

  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
    messageBytes: number,
  ): void {
    // The results must be set first, because the next call may send the answer with them.
    this.#results.settled(this.#range, outcome, code);
    this.#pending.frameSettled(outcome, code, events, bytes, messageBytes);
  }
}

const collectedBytesMax = 16_384;
/** This byte separates items. It never occurs in JSON, so different lists have different hashes. */
const END = 0;

class ItemsHash {
  readonly #body: Buffer;
  readonly #collected: Buffer;
  #collectedBytes = 0;
  #hash: Hash | undefined = undefined;

  constructor(body: Buffer) {
    this.#body = body;
    this.#collected = Buffer.allocUnsafe(Math.min(collectedBytesMax, body.length + 1));
  }

  begin(prefix: string): void {
    this.#hash = createHash("sha256").update(prefix);
    this.#collectedBytes = 0;
  }

  add(start: number, end: number): void {
    const bytes = end - start + 1;
    if (this.#collectedBytes + bytes > this.#collected.length)
      this.#hashBytes(this.#collected, 0, this.#collectedBytes);
    if (bytes > this.#collected.length) {
      this.#hashBytes(this.#body, start, end);
    } else {
      this.#body.copy(this.#collected, this.#collectedBytes, start, end);
      this.#collectedBytes += bytes - 1;
    }
    this.#collected[this.#collectedBytes++] = END;
  }

  end(): string {
    this.#hashBytes(this.#collected, 0, this.#collectedBytes);
    const digest = this.#hash?.digest("base64url") ?? "";
    this.#hash = undefined;
    return digest;
  }

  #hashBytes(bytes: Buffer, start: number, end: number): void {
    this.#hash?.update(bytes.subarray(start, end));
    this.#collectedBytes = 0;
  }
}
