// The body of one request: its state, its properties, and the bytes of the budget that it holds.
//
//   head ─► arriving ─► whole ◄─► waiting
//     │                 ▲  │
//     └─────────────────┘  └─► taken (by the intake)
//
// If the answer is known before the whole body has arrived, it is stored as the verdict. The rest
// of the body is then read and discarded. In every state, the request may be answered and its
// client may disconnect.

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
 * - `arriving`: the bytes that have arrived are in `buffer`, unless the body is discarded.
 * - `whole`: the body is in `buffer`, or in memory that is valid only during the current call.
 * - `waiting`: the body is being joined or unpacked. If `buffer` is undefined, this work owns the
 *   memory.
 * - `taken`: the intake owns the body and its memory until the answer.
 */
type BodyState = "head" | "arriving" | "whole" | "waiting" | "taken";

/** The part of the body that has arrived: nothing (`head`), a part (`body`) or all (`answer`). */
export type RequestPhase = "head" | "body" | "answer";

interface BodyRequest extends Exchange {
  readonly label: string;
  readonly isOver: boolean;
  keepOpen(): void;
}

interface RequestBodyOptions {
  readonly request: BodyRequest;
  readonly admission: Admission;
  readonly growing: GrowingBodies<RequestBody>;
  readonly peek: Peek | undefined;
  readonly startedMs: number;
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
  /**
   * The answer to a request whose body is discarded. It is sent after the whole body has arrived.
   */
  verdict: Problem | FixedAnswer | undefined = undefined;
  bytesArrived = 0;
  pieces = 0;
  /** The number of chunks that arrived after the answer or the disconnect. */
  chunksSkipped = 0;
  bytesHeld = 0;
  buffer: BodyBuffer | undefined = undefined;
  contentEncoding: string;
  compression: Compression | undefined = undefined;
  layers = 0;
  /** The payload in the query string, as sent by the client. It is "" without one. */
  queryData = "";
  cancelWork: (() => void) | undefined = undefined;
  hint: BodyHint | undefined = undefined;
  /** If the body has no events, this function receives the body instead of the intake. */
  taker: Intake | undefined = undefined;
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

  get isPlain(): boolean {
    return this.contentEncoding === "" && this.compression === undefined;
  }

  get hasFixedAnswer(): boolean {
    return this.verdict !== undefined && !("code" in this.verdict);
  }

  get isKnown(): boolean {
    return !this.hasFixedAnswer && (this.hint === undefined || this.hint.projectId !== undefined);
  }

  get showsProject(): boolean {
    return this.hint?.projectId !== undefined;
  }

  get isLarge(): boolean {
    return this.#admission.isLarge(this.#bytesWith(0));
  }

  tryHold(bytes: number): boolean {
    const requestBytes = this.#bytesWith(bytes);
    const isGrowing = this.state !== "taken";
    if (isGrowing && this.#admission.isLarge(requestBytes)) this.#growing.add(this);
    if (!this.#admission.tryTake(bytes, requestBytes)) return false;
    this.bytesHeld += bytes;
    return true;
  }

  lacking(bytes: number): number {
    return this.#admission.lacking(bytes, this.#bytesWith(bytes));
  }

  peek(bytes: Buffer, isWhole: boolean): void {
    const { hint } = this;
    if (this.taker !== undefined) return;
    if (hint?.projectId !== undefined && (!isWhole || hint.lane !== undefined)) return;
    const apiKey = this.request.v1?.apiKey ?? this.conversion?.head.apiKey;
    this.hint = this.#peek?.(bytes, isWhole, apiKey);
  }

  discard(verdict: Problem | FixedAnswer): void {
    this.verdict ??= verdict;
    this.release();
  }

  /** Ends the request with the error `overloaded`. */
  evict(): void {
    if (this.phase === "answer") this.request.answerProblem(noRoom);
    else this.discard(noRoom);
  }

  keepOpen(): void {
    this.request.keepOpen();
  }

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
