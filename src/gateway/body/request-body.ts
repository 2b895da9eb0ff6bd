// The body of one request: its state, its properties, and the bytes that it holds of the budget.
//
//   head ─► arriving ─► whole ◄─► waiting
//     │                 ▲  │
//     └─────────────────┘  └─► taken (by the intake)
//
// A body that has a verdict is read up to `whole` as well, but discarded. The request may be
// answered, and its client may disconnect, in every state.

import type { Problem } from "../../platform/base/errors.ts";
import type { Conversion } from "../http/conversion/conversion.ts";
import type { FixedAnswer } from "../http/pages/fixed-answer.ts";
import type { BodyHint, Exchange, Intake, Peek } from "../http/port.ts";
import type { Admission } from "../intake/admission.ts";
import type { BodyBuffer } from "./body-buffer.ts";
import { noRoom } from "./body-problems.ts";
import type { Compression } from "./codings.ts";
import type { GrowingBodies } from "./growing-bodies.ts";

export const BodyState = {
  /** No byte of the body has arrived. */
  Head: "head",
  /** Some bytes of the body have arrived. They are in `buffer` unless the body is discarded. */
  Arriving: "arriving",
  /**
   * The whole body has arrived, and is in `buffer`. If `buffer` is undefined, the body is in memory
   * that is valid only during the current call of the body reader: uWS's own memory, or that of an
   * inflation on the event loop.
   */
  Whole: "whole",
  /**
   * The body is joined, or its next layer is unpacked, over several event loop iterations. If
   * `buffer` is undefined, the memory of the body belongs to that work.
   */
  Waiting: "waiting",
  /**
   * The intake has the body, and will answer. Until then the intake alone owns the body's memory.
   */
  Taken: "taken",
} as const;
export type BodyState = (typeof BodyState)[keyof typeof BodyState];

/**
 * The progress of a request for outside observers: `head` if no byte of the body has arrived,
 * `body` if some have, `answer` if all have.
 */
export type RequestPhase = "head" | "body" | "answer";

const phaseOf: Readonly<Record<BodyState, RequestPhase>> = {
  head: "head",
  arriving: "body",
  whole: "answer",
  waiting: "answer",
  taken: "answer",
};

/** The request of a body. The intake receives both. */
interface BodyRequest extends Exchange {
  readonly label: string;
  /**
   * Whether the request is answered or its client has disconnected. If so, later results must be
   * ignored.
   */
  readonly isOver: boolean;
  /** Restarts uWS's timeout of ten seconds. */
  keepOpen(): void;
}

interface RequestBodyOptions {
  readonly request: BodyRequest;
  readonly admission: Admission;
  readonly growing: GrowingBodies<RequestBody>;
  /** Finds the project and lane in a body's first bytes; if undefined, the body has no hint. */
  readonly peek: Peek | undefined;
  /** Time when the head arrived, in milliseconds of the monotonic clock. */
  readonly startedMs: number;
  /** Content-Length in bytes, or -1 if absent. */
  readonly bytesDeclared: number;
  /** Content-Encoding as sent, "" if absent. */
  readonly contentEncoding: string;
  readonly senderAddress: string;
}

export class RequestBody {
  readonly request: BodyRequest;
  readonly startedMs: number;
  readonly bytesDeclared: number;
  /** The client's address, even if addresses are not recorded. */
  readonly senderAddress: string;
  state: BodyState = BodyState.Head;
  /**
   * The answer that is sent once the body has arrived: a problem, or the fixed answer of a path
   * that discards bodies. Undefined if the body is processed.
   */
  verdict: Problem | FixedAnswer | undefined = undefined;
  bytesArrived = 0;
  /** Number of pieces that have arrived. */
  pieces = 0;
  /** Number of chunks that arrived after the answer was known or the client had disconnected. */
  chunksSkipped = 0;
  /** Bytes of the admission budget that this body holds. */
  bytesHeld = 0;
  buffer: BodyBuffer | undefined = undefined;
  /** The coding that is still to be unpacked, as named by Content-Encoding. */
  contentEncoding: string;
  /**
   * The compression that the query names. If the query names no compression, the one that the form
   * names.
   */
  compression: Compression | undefined = undefined;
  /** The layers that have been removed, as bits of `Layer`. */
  layers = 0;
  /** A payload in the query, as sent; "" for none. */
  queryData = "";
  /** Stops the work on a body in state `waiting`; undefined in other states. */
  cancelWork: (() => void) | undefined = undefined;
  hint: BodyHint | undefined = undefined;
  /** Receives the body unchanged instead of the intake; set if the body contains no events. */
  taker: Intake | undefined = undefined;
  /** Converts the body to events before the intake takes it. */
  conversion: Conversion | undefined = undefined;
  /** Number of bytes that had arrived at the last peek for the body's key. */
  bytesPeeked = 0;
  /** Number of bytes that had arrived at the last check for slowness. */
  bytesChecked = 0;
  /** Number of consecutive checks that found no new bytes. */
  idleChecks = 0;
  readonly #admission: Admission;
  readonly #growing: GrowingBodies<RequestBody>;
  readonly #peek: Peek | undefined;

  constructor(options: RequestBodyOptions) {
    this.request = options.request;
    this.startedMs = options.startedMs;
    this.bytesDeclared = options.bytesDeclared;
    this.senderAddress = options.senderAddress;
    this.contentEncoding = options.contentEncoding;
    this.#admission = options.admission;
    this.#growing = options.growing;
    this.#peek = options.peek;
  }

  get phase(): RequestPhase {
    return phaseOf[this.state];
  }

  /** Whether neither headers nor query state that the body is packed. */
  get isPlain(): boolean {
    return this.contentEncoding === "" && this.compression === undefined;
  }

  /** Whether the request gets a fixed answer other than a problem, whatever the body contains. */
  get hasFixedAnswer(): boolean {
    return this.verdict !== undefined && !("code" in this.verdict);
  }

  /**
   * Whether the body contains the key of a project, or the check for keys is off. False for a body
   * with a fixed answer.
   */
  get isKnown(): boolean {
    return !this.hasFixedAnswer && (this.hint === undefined || this.hint.projectId !== undefined);
  }

  get showsProject(): boolean {
    return this.hint?.projectId !== undefined;
  }

  /**
   * Whether the body is large. Its size is the greater of the bytes that it holds and those that it
   * announces.
   */
  get isLarge(): boolean {
    return this.#admission.isLarge(this.#bytesWith(0));
  }

  /**
   * Reserves bytes of the budget for a body that grows or is repaired. Returns false if the budget
   * has no room for them.
   */
  tryHold(bytes: number): boolean {
    const requestBytes = this.#bytesWith(bytes);
    const isGrowing = this.state !== BodyState.Taken;
    if (isGrowing && this.#admission.isLarge(requestBytes)) this.#growing.add(this);
    if (!this.#admission.tryTake(bytes, requestBytes)) return false;
    this.bytesHeld += bytes;
    return true;
  }

  /** Returns the number of bytes that the budget lacks for `tryHold` to return true. */
  lacking(bytes: number): number {
    return this.#admission.lacking(bytes, this.#bytesWith(bytes));
  }

  /**
   * Searches the part of the body that has arrived or was inflated for its key and lane. Does
   * nothing if an earlier call has found both.
   */
  peek(bytes: Buffer, isWhole: boolean): void {
    const { hint } = this;
    if (this.taker !== undefined) return;
    if (hint?.projectId !== undefined && (!isWhole || hint.lane !== undefined)) return;
    const apiKey = this.request.v1?.apiKey ?? this.conversion?.head.apiKey;
    this.hint = this.#peek?.(bytes, isWhole, apiKey);
  }

  /**
   * Discards the body and answers the request with the verdict at the body's end. If called again,
   * the first verdict applies.
   */
  discard(verdict: Problem | FixedAnswer): void {
    this.verdict ??= verdict;
    this.release();
  }

  /**
   * Releases the budget of this body for another one. The request is answered with `overloaded`,
   * immediately or at the body's end.
   */
  evict(): void {
    if (this.phase === "answer") this.request.answerProblem(noRoom);
    else this.discard(noRoom);
  }

  keepOpen(): void {
    this.request.keepOpen();
  }

  /**
   * Passes the ownership of the body to the intake, when the body is whole and unpacked. After that
   * the body cannot be evicted.
   */
  handOver(): void {
    this.state = BodyState.Taken;
    this.stopGrowing();
  }

  stopGrowing(): void {
    this.#growing.delete(this);
  }

  /** Frees the memory of the body, after its layer has been unpacked or is no longer needed. */
  freeBuffer(): void {
    this.buffer?.free();
    this.buffer = undefined;
  }

  /** Releases the bytes of the budget that the body holds, and its memory. */
  release(): void {
    this.stopGrowing();
    if (this.bytesHeld > 0) this.#admission.release(this.bytesHeld);
    this.bytesHeld = 0;
    this.freeBuffer();
  }

  /** Stops the work on a body in state `waiting`, after its request is over. */
  stopWork(): void {
    const { cancelWork } = this;
    this.cancelWork = undefined;
    cancelWork?.();
  }

  end(): void {
    this.stopWork();
    this.release();
  }

  #bytesWith(bytes: number): number {
    return Math.max(this.bytesHeld + bytes, this.bytesDeclared);
  }
}
