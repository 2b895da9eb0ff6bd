// Frames of their own for the events of a request of the newer protocol (v1), however few they are, so that each event learns what became
// of its frame, and a frame that comes again is known: its id is made of the request's and of the bytes of the events in it.

import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { ErrorCode } from "../errors.ts";
import { recordsBytesMax } from "../events/record.ts";
import { Header, Row } from "../scan/table.ts";
import type { FrameOutcome, FrameSink, FrameWaiter } from "../types.ts";
import type { EventResults } from "./event-results.ts";
import type { PendingRequest } from "./pending-request.ts";
import { ownFrameBytes, type RequestFrames, type RequestFramesOptions } from "./request-frames.ts";

export interface ResultFramesOf {
  /** The same over retries; "" where the client has none. */
  readonly requestId: string;
  readonly results: EventResults;
  readonly body: Buffer;
  readonly events: number;
  /** Holds the table of the body. */
  readonly scanner: { readonly table: Uint32Array };
}

export class ResultFrames implements RequestFrames {
  readonly #options: RequestFramesOptions;
  readonly #of: ResultFramesOf;
  #frame: FrameSink | undefined = undefined;
  #firstIndex = 0;
  #lastIndex = 0;
  // The bytes of the body from the first event in the frame to the last.
  #bytesStart = 0;
  #bytesEnd = 0;
  #bytesPlanned = 0;
  #capacity = 0;

  constructor(options: RequestFramesOptions, of: ResultFramesOf) {
    this.#options = options;
    this.#of = of;
  }

  sinkFor(bytes: number, index: number): FrameSink {
    const { publisher, lane, project } = this.#options;
    const { table } = this.#of.scanner;
    const row = Header.Words + (index - table[Header.FirstItem]!) * Row.Words;
    if (this.#frame !== undefined && this.#bytesPlanned + bytes > this.#capacity) this.finish();
    if (this.#frame === undefined) {
      this.#capacity = Math.max(bytes, this.#usualCapacity());
      this.#frame = publisher.ownFrame(lane, project, this.#capacity);
      this.#bytesPlanned = 0;
      this.#firstIndex = index;
      this.#bytesStart = table[row + Row.ItemStart]!;
    }
    this.#bytesPlanned += bytes;
    this.#lastIndex = index;
    this.#bytesEnd = table[row + Row.ItemEnd]!;
    return this.#frame;
  }

  /** Nobody else has lines in an own frame, and it cannot leave before it is submitted. */
  endTurn(): void {}

  finish(): void {
    const frame = this.#frame;
    if (frame === undefined) return;
    this.#frame = undefined;
    const { publisher, pending, deadlineMs } = this.#options;
    pending.expectFrame();
    const waiter = new ResultWaiter(this.#of.results, pending, { first: this.#firstIndex, last: this.#lastIndex });
    publisher.submit(frame, this.#messageId(frame.events), waiter, deadlineMs);
  }

  abandon(): void {
    if (this.#frame !== undefined) this.#options.publisher.discard(this.#frame);
    this.#frame = undefined;
  }

  /** A small request takes no more memory than it may need. */
  #usualCapacity(): number {
    const { body, events } = this.#of;
    return Math.min(ownFrameBytes(this.#options.publisher), recordsBytesMax(body.length, events));
  }

  /**
   * Of the events, not of the whole body: what a client sends again after part of it was stored is known as far as it is cut into frames
   * at the same events, and a frame is never taken for one of other events. Some 0.2 ms for a full frame.
   */
  #messageId(events: number): string {
    const { lane, project } = this.#options;
    const { requestId, body } = this.#of;
    const hash = createHash("sha256").update(`${lane} ${project.id} ${requestId} `);
    return `${hash.update(body.subarray(this.#bytesStart, this.#bytesEnd)).digest("base64url")}-${events}`;
  }
}

/** Hears of one frame, for the events in it, and passes it on. */
class ResultWaiter implements FrameWaiter {
  readonly #results: EventResults;
  readonly #pending: PendingRequest;
  readonly #range: { readonly first: number; readonly last: number };

  constructor(results: EventResults, pending: PendingRequest, range: { first: number; last: number }) {
    this.#results = results;
    this.#pending = pending;
    this.#range = range;
  }

  frameSettled(outcome: FrameOutcome, code: ErrorCode | undefined, events: number, bytes: number): void {
    // First, because the pending request may answer.
    this.#results.settled(this.#range, outcome, code);
    this.#pending.frameSettled(outcome, code, events, bytes);
  }
}
