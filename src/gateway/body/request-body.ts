// The body of one request: its state, its properties, and the bytes of the budget that it holds.
//
//   head ─► arriving ─► whole ◄─► waiting
//     │                 ▲  │
//     └─────────────────┘  └─► taken (by the intake)
//
// The verdict is an answer that is decided before the body has arrived completely. A body with a
// verdict is read to its end, but its bytes are discarded. In every state, the request may be
// answered and its client may disconnect.

import type { Problem } from "../../platform/base/errors.ts";
import type { Conversion } from "../http/conversion/conversion.ts";
import type { BodyHint, Exchange, Intake, Peek } from "../http/port.ts";
import type { FixedAnswer } from "../http/reply.ts";
import type { Admission } from "../intake/admission.ts";
import type { BodyBuffer } from "./body-buffer.ts";
import { noRoom } from "./body-problems.ts";
import type { GrowingBodies } from "./growing-bodies.ts";
import type { Compression } from "./payload-form.ts";

/**
 * - `arriving`: the arrived bytes are in `buffer`, unless the body is discarded.
 * - `whole`: the body is in `buffer`, or in memory that is valid only during the current call.
 * - `waiting`: the body is being joined or unpacked. If `buffer` is undefined, this work owns the
 *   memory.
 * - `taken`: the intake has the body and owns its memory until the answer.
 */
type BodyState = "head" | "arriving" | "whole" | "waiting" | "taken";

/** How much of the body has arrived: nothing (`head`), a part (`body`) or all (`answer`). */
export type RequestPhase = "head" | "body" | "answer";

interface BodyRequest extends Exchange {
  readonly label: string;
  /** Whether the request is answered or its client has disconnected. Later results are ignored. */
  readonly isOver: boolean;
  /** Restarts uWS's timeout of ten seconds. */
  keepOpen(): void;
}

interface RequestBodyOptions {
  readonly request: BodyRequest;
  readonly admission: Admission;
  readonly growing: GrowingBodies<RequestBody>;
  readonly peek: Peek | undefined;
  readonly startedMs: number;
  /** Content-Length in bytes, or -1 if absent. */
  readonly bytesDeclared: number;
  readonly contentEncoding: string;
  readonly senderAddress: string;
}

export class RequestBody {
  readonly request: BodyRequest;
  readonly startedMs: number;
  readonly bytesDeclared: number;
  readonly senderAddress: string;
  state: BodyState = "head";
  /** The answer to a discarded body, sent once the body has arrived; else undefined. */
  verdict: Problem | FixedAnswer | undefined = undefined;
  bytesArrived = 0;
  pieces = 0;
  /** Number of chunks that arrived after the answer was known or the client had disconnected. */
  chunksSkipped = 0;
  /** Bytes of the admission budget that this body holds. */
  bytesHeld = 0;
  buffer: BodyBuffer | undefined = undefined;
  /** The coding that must still be unpacked, as Content-Encoding names it. */
  contentEncoding: string;
  /** The compression that the query names, else the compression that the form names. */
  compression: Compression | undefined = undefined;
  layers = 0;
  /** A payload in the query, as sent; "" if absent. */
  queryData = "";
  /** Stops the work on a body in state `waiting`. */
  cancelWork: (() => void) | undefined = undefined;
  hint: BodyHint | undefined = undefined;
  /** Receives a body without events, instead of the intake. */
  taker: Intake | undefined = undefined;
  /** Converts the body to events before the intake takes it. */
  conversion: Conversion | undefined = undefined;
  bytesPeeked = 0;
  bytesChecked = 0;
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
    if (this.state === "head") return "head";
    return this.state === "arriving" ? "body" : "answer";
  }

  /** Whether the headers and the query name no compression. */
  get isPlain(): boolean {
    return this.contentEncoding === "" && this.compression === undefined;
  }

  /** Whether the body is discarded and its answer is not a problem. */
  get hasFixedAnswer(): boolean {
    return this.verdict !== undefined && !("code" in this.verdict);
  }

  /** Whether the body contains a project's key. Also true if keys are not checked. */
  get isKnown(): boolean {
    return !this.hasFixedAnswer && (this.hint === undefined || this.hint.projectId !== undefined);
  }

  get showsProject(): boolean {
    return this.hint?.projectId !== undefined;
  }

  get isLarge(): boolean {
    return this.#admission.isLarge(this.#bytesWith(0));
  }

  /** Reserves bytes of the budget. Returns false if there are too few. */
  tryHold(bytes: number): boolean {
    const requestBytes = this.#bytesWith(bytes);
    const isGrowing = this.state !== "taken";
    if (isGrowing && this.#admission.isLarge(requestBytes)) this.#growing.add(this);
    if (!this.#admission.tryTake(bytes, requestBytes)) return false;
    this.bytesHeld += bytes;
    return true;
  }

  /** Returns the number of bytes that the budget lacks for `tryHold` to succeed. */
  lacking(bytes: number): number {
    return this.#admission.lacking(bytes, this.#bytesWith(bytes));
  }

  /** Searches a part of the body for its key and lane, unless both are known. */
  peek(bytes: Buffer, isWhole: boolean): void {
    const { hint } = this;
    if (this.taker !== undefined) return;
    if (hint?.projectId !== undefined && (!isWhole || hint.lane !== undefined)) return;
    const apiKey = this.request.v1?.apiKey ?? this.conversion?.head.apiKey;
    this.hint = this.#peek?.(bytes, isWhole, apiKey);
  }

  /** Discards the body. At its end, the request gets the first verdict as the answer. */
  discard(verdict: Problem | FixedAnswer): void {
    this.verdict ??= verdict;
    this.release();
  }

  /** Releases the budget for another body. The request gets the error `overloaded`. */
  evict(): void {
    if (this.phase === "answer") this.request.answerProblem(noRoom);
    else this.discard(noRoom);
  }

  keepOpen(): void {
    this.request.keepOpen();
  }

  /** Marks the body as taken by the intake. A taken body cannot be evicted. */
  handOver(): void {
    this.state = "taken";
    this.stopGrowing();
  }

  stopGrowing(): void {
    this.#growing.delete(this);
  }

  freeBuffer(): void {
    this.buffer?.free();
    this.buffer = undefined;
  }

  release(): void {
    this.stopGrowing();
    if (this.bytesHeld > 0) this.#admission.release(this.bytesHeld);
    this.bytesHeld = 0;
    this.freeBuffer();
  }

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
