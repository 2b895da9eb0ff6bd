// The body of one request: how far it is, what is known of it, and what it holds of the budget.
//
//   head ─► arriving ─► whole ◄─► waiting
//     │                 ▲  │
//     └─────────────────┘  └─► taken (by the intake)
//
// A body that has a verdict is read as far as `whole` as well, but nothing of it is kept. The
// request may be answered, and its client may go, in every state.

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
  /** Nothing of it has come. */
  Head: "head",
  /** Some of it has come: what is kept lies in `buffer`. */
  Arriving: "arriving",
  /**
   * All of it has come. It lies in `buffer`; where that is undefined, in memory that is valid only
   * during the present call of the body reader: uWS's own, or what was inflated at once.
   */
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

/** The request that a body belongs to: the intake gets both. */
interface BodyRequest extends Exchange {
  readonly label: string;
  /** Answered, or left by its client: what still comes for it is to be ignored. */
  readonly isOver: boolean;
  /** Has uWS begin its timeout of ten seconds anew. */
  keepOpen(): void;
}

interface RequestBodyOptions {
  readonly request: BodyRequest;
  readonly admission: Admission;
  readonly growing: GrowingBodies<RequestBody>;
  /** Peeks at a body for its project and its lane. Without this function no body has a hint. */
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
  /** The client's address, whether addresses are recorded or not. */
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
  /** The chunks that have come since the answer was known, or the client was gone. */
  chunksPassedOver = 0;
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
  /** Takes the body as it came, in place of the intake: it holds no events. */
  taker: Intake | undefined = undefined;
  /** Makes events of the body before the intake takes it. */
  conversion: Conversion | undefined = undefined;
  /** How much of the body had come when it was last peeked into for its key. */
  bytesPeeked = 0;
  /** How much of the body had come when it was last checked for being slow. */
  bytesChecked = 0;
  /** How many checks in a row have found no new bytes. */
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

  /** The request gets a fixed answer that is no problem, whatever is in its body. */
  get hasFixedAnswer(): boolean {
    return this.verdict !== undefined && !("code" in this.verdict);
  }

  /**
   * The body shows the key of a project, or no key is looked for. A body with a fixed answer counts
   * as one that shows none.
   */
  get isKnown(): boolean {
    return !this.hasFixedAnswer && (this.hint === undefined || this.hint.projectId !== undefined);
  }

  get showsProject(): boolean {
    return this.hint?.projectId !== undefined;
  }

  /** The body is large by what it holds or, if that is more, announces. */
  get isLarge(): boolean {
    return this.#admission.isLarge(this.#bytesWith(0));
  }

  /** Takes bytes out of the budget for a body that grows or is repaired, or returns false. */
  tryHold(bytes: number): boolean {
    const requestBytes = this.#bytesWith(bytes);
    const isGrowing = this.state !== BodyState.Taken;
    if (isGrowing && this.#admission.isLarge(requestBytes)) this.#growing.add(this);
    if (!this.#admission.tryTake(bytes, requestBytes)) return false;
    this.bytesHeld += bytes;
    return true;
  }

  /** What the budget lacks for `tryHold` to return true. */
  lacking(bytes: number): number {
    return this.#admission.lacking(bytes, this.#bytesWith(bytes));
  }

  /**
   * Peeks at what has come of the body, or of what it inflates to, unless an earlier peek has shown
   * all that is looked for.
   */
  peek(bytes: Buffer, isWhole: boolean): void {
    const { hint } = this;
    if (this.taker !== undefined) return;
    if (hint?.projectId !== undefined && (!isWhole || hint.lane !== undefined)) return;
    const apiKey = this.request.v1?.apiKey ?? this.conversion?.head.apiKey;
    this.hint = this.#peek?.(bytes, isWhole, apiKey);
  }

  /**
   * Keeps nothing of the body, and has the request answered with the verdict at the body's end. The
   * first verdict counts.
   */
  discard(verdict: Problem | FixedAnswer): void {
    this.verdict ??= verdict;
    this.release();
  }

  /**
   * Gives the room of this body to another one. The request is answered with `overloaded`, at once
   * or at the body's end.
   */
  evict(): void {
    if (this.phase === "answer") this.request.answerProblem(noRoom);
    else this.discard(noRoom);
  }

  keepOpen(): void {
    this.request.keepOpen();
  }

  /** The body is whole and unpacked: it is the intake's now, and is not evicted any more. */
  handOver(): void {
    this.state = BodyState.Taken;
    this.stopGrowing();
  }

  stopGrowing(): void {
    this.#growing.delete(this);
  }

  /** Frees the memory of the body, whose layer has been unpacked or is not wanted any more. */
  freeBuffer(): void {
    this.buffer?.free();
    this.buffer = undefined;
  }

  /** Gives back the budget's bytes that the body holds, and its memory. */
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
