// The body of one request: how far it is, what is known of it, and what it holds of the budget.
//
//   head ─► arriving ─► whole ◄─► waiting
//     │                 ▲  │
//     └─────────────────┘  └─► taken (by the intake)
//
// A body that has a verdict is read as far as `whole` as well, but nothing of it is kept. The
// request may be answered, and its client may go, in every state.

import type { Problem } from "../../base/errors.ts";
import type { Admission, BodyHint, Exchange, Peek } from "../../base/types.ts";
import type { FixedAnswer } from "../pages/fixed-answer.ts";
import type { BodyBuffer } from "./body-buffer.ts";
import { noRoom } from "./body-problems.ts";
import type { Compression } from "./codings.ts";
import type { GrowingBodies } from "./growing-bodies.ts";

export const BodyState = {
  /** Nothing of it has come. */
  Head: "head",
  /** Some of it has come: what is kept lies in `buffer`. */
  Arriving: "arriving",
  /** All of it is here: in `buffer`, or in memory that is gone when the call returns. */
  Whole: "whole",
  /**
   * It is put together, or its next layer is unpacked, over several turns of the event loop. Its
   * memory belongs to that work where `buffer` is undefined.
   */
  Waiting: "waiting",
  /** The intake has it, and will answer. Its memory belongs to nobody else until then. */
  Taken: "taken",
} as const;
export type BodyState = (typeof BodyState)[keyof typeof BodyState];

/** Where a request is, as others see it: no byte of the body is here, some of them are, or all. */
export type RequestPhase = "head" | "body" | "answer";

const phaseOf: Readonly<Record<BodyState, RequestPhase>> = {
  head: "head",
  arriving: "body",
  whole: "answer",
  waiting: "answer",
  taken: "answer",
};

/** The request that a body belongs to: the intake has the one with the other. */
export interface BodyRequest extends Exchange {
  readonly label: string;
  /** Answered, or left by its client: what still comes for it is to be ignored. */
  readonly isOver: boolean;
  /** Has uWS count its ten seconds anew. */
  keepOpen(): void;
}

export interface RequestBodyOptions {
  readonly request: BodyRequest;
  readonly admission: Admission;
  readonly growing: GrowingBodies<RequestBody>;
  /** Without it no body has a hint. */
  readonly peek: Peek | undefined;
  /** Monotonic clock, milliseconds: when the head came. */
  readonly startedMs: number;
  /** Content-Length, or -1 for none. */
  readonly bytesDeclared: number;
  /** Content-Encoding as sent, "" for none. */
  readonly contentEncoding: string;
  readonly senderAddress: string;
}

export class RequestBody {
  readonly request: BodyRequest;
  readonly startedMs: number;
  readonly bytesDeclared: number;
  /**
   * The client's address, whether addresses are recorded or not: it tells senders apart while the
   * request lasts, and goes nowhere else.
   */
  readonly senderAddress: string;
  state: BodyState = BodyState.Head;
  /**
   * The answer that is given once the body has come, whatever more of it comes: a problem, or the
   * fixed answer of a path that keeps no bodies.
   */
  verdict: Problem | FixedAnswer | undefined = undefined;
  bytesArrived = 0;
  /** The pieces that the body has come in so far. */
  pieces = 0;
  /** Bytes of the admission budget that this body holds. */
  bytesHeld = 0;
  buffer: BodyBuffer | undefined = undefined;
  /** The coding of what is still to be unpacked, as Content-Encoding names it. */
  contentEncoding: string;
  /** The compression that the query names or, where it names none, the form. */
  compression: Compression | undefined = undefined;
  /** The layers that have been taken off, as bits: see payload-form.ts. */
  layers = 0;
  /** A payload in the query, as it stands there; "" for none. */
  queryData = "";
  /** Stops the work on a body that is waiting. */
  cancelWork: (() => void) | undefined = undefined;
  hint: BodyHint | undefined = undefined;
  /** How much of the body had come when it was last peeked into for its key. */
  bytesPeeked = 0;
  /** How much of it had come when it was last checked for being slow. */
  bytesChecked = 0;
  /** So many checks in a row have found nothing new. */
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

  /** Nothing that came before the body says that it is packed. */
  get isPlain(): boolean {
    return this.contentEncoding === "" && this.compression === undefined;
  }

  /** The request is answered well, and its body makes no difference. */
  get hasFixedAnswer(): boolean {
    return this.verdict !== undefined && !("code" in this.verdict);
  }

  /** Its project is known, or nobody looks for it. */
  get isKnown(): boolean {
    return !this.hasFixedAnswer && (this.hint === undefined || this.hint.projectId !== undefined);
  }

  get showsProject(): boolean {
    return this.hint?.projectId !== undefined;
  }

  /** Judged by what it holds or announces. */
  get isLarge(): boolean {
    return this.#admission.isLarge(this.#bytesWith(0));
  }

  /** Takes bytes out of the budget for a body that grows, or returns false. */
  tryHold(bytes: number): boolean {
    const requestBytes = this.#bytesWith(bytes);
    if (this.#admission.isLarge(requestBytes)) this.#growing.add(this);
    if (!this.#admission.tryTake(bytes, requestBytes)) return false;
    this.bytesHeld += bytes;
    return true;
  }

  /** What the budget lacks for `tryHold` to return true. */
  lacking(bytes: number): number {
    return this.#admission.lacking(bytes, this.#bytesWith(bytes));
  }

  /**
   * Peeks at what has come of the body, or of what it inflates to, unless that has told all
   * already.
   */
  peek(bytes: Buffer, isWhole: boolean): void {
    const { hint } = this;
    if (hint?.projectId !== undefined && (!isWhole || hint.lane !== undefined)) return;
    this.hint = this.#peek?.(bytes, isWhole, this.request.v1?.apiKey);
  }

  /** Keeps nothing of the body, and has the request answered so at its end. The first counts. */
  discard(verdict: Problem | FixedAnswer): void {
    this.verdict ??= verdict;
    this.release();
  }

  /** Gives its room to another body. */
  evict(): void {
    if (this.phase === "answer") this.request.answerProblem(noRoom);
    else this.discard(noRoom);
  }

  keepOpen(): void {
    this.request.keepOpen();
  }

  /** The body is what it will be: it is the intake's now, and is not evicted any more. */
  handOver(): void {
    this.state = BodyState.Taken;
    this.stopGrowing();
  }

  stopGrowing(): void {
    this.#growing.delete(this);
  }

  /** Drops the layer that has been unpacked. */
  freeBuffer(): void {
    this.buffer?.free();
    this.buffer = undefined;
  }

  /** Gives back the body's bytes and memory. */
  release(): void {
    this.stopGrowing();
    if (this.bytesHeld > 0) this.#admission.release(this.bytesHeld);
    this.bytesHeld = 0;
    this.freeBuffer();
  }

  /** Stops what is still done for a body that is waiting: its request has its answer. */
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
