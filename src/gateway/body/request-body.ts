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
  /** Nothing of it has arrived. */
  Head: "head",
  /** Some of it has arrived, and is in `buffer` unless it is discarded. */
  Arriving: "arriving",
  /**
   * All of it has arrived. It is in `buffer` or, if that is undefined, in memory that is valid only
   * during the current call of the body reader: uWS's own, or that of an inflation at once.
   */
  Whole: "whole",
  /**
   * It is joined, or its next layer is unpacked, over several turns of the event loop. Its memory
   * belongs to that work if `buffer` is undefined.
   */
  Waiting: "waiting",
  /** The intake has it, and will answer. Until then the intake alone owns its memory. */
  Taken: "taken",
} as const;
export type BodyState = (typeof BodyState)[keyof typeof BodyState];

/**
 * The progress of a request for outside observers: no byte of the body has arrived, some, or all.
 */
export type RequestPhase = "head" | "body" | "answer";

const phaseOf: Readonly<Record<BodyState, RequestPhase>> = {
  head: "head",
  arriving: "body",
  whole: "answer",
  waiting: "answer",
  taken: "answer",
};

/** The request of a body: the intake gets both. */
interface BodyRequest extends Exchange {
  readonly label: string;
  /** Answered, or abandoned by its client: later results must be ignored. */
  readonly isOver: boolean;
  /** Restarts uWS's timeout of ten seconds. */
  keepOpen(): void;
}

interface RequestBodyOptions {
  readonly request: BodyRequest;
  readonly admission: Admission;
  readonly growing: GrowingBodies<RequestBody>;
  /** Peeks at a body for its project and its lane. Without this function no body has a hint. */
  readonly peek: Peek | undefined;
  /** When the head arrived, in milliseconds of the monotonic clock. */
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
  /** The client's address, even if addresses are not recorded. */
  readonly senderAddress: string;
  state: BodyState = BodyState.Head;
  /**
   * The answer that is sent once the body has arrived: a problem, or the fixed answer of a path
   * that discards bodies.
   */
  verdict: Problem | FixedAnswer | undefined = undefined;
  bytesArrived = 0;
  /** Number of pieces that have arrived. */
  pieces = 0;
  /** Number of chunks that arrived after the answer was known, or the client had disconnected. */
  chunksSkipped = 0;
  /** Bytes of the admission budget that this body holds. */
  bytesHeld = 0;
  buffer: BodyBuffer | undefined = undefined;
  /** The coding that is still to be unpacked, as named by Content-Encoding. */
  contentEncoding: string;
  /** The compression that the query names or, if it names none, the form. */
  compression: Compression | undefined = undefined;
  /** The removed layers, as bits: see payload-form.ts. */
  layers = 0;
  /** A payload in the query, as sent; "" for none. */
  queryData = "";
  /** Stops the work on a body that is waiting. */
  cancelWork: (() => void) | undefined = undefined;
  hint: BodyHint | undefined = undefined;
  /** Receives the body unchanged instead of the intake, because it contains no events. */
  taker: Intake | undefined = undefined;
  /** Converts the body to events before the intake takes it. */
  conversion: Conversion | undefined = undefined;
  /** How much of the body had arrived at the last peek for its key. */
  bytesPeeked = 0;
  /** How much of the body had arrived at the last check for slowness. */
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

  /** Neither headers nor query state that the body is packed. */
  get isPlain(): boolean {
    return this.contentEncoding === "" && this.compression === undefined;
  }

  /** The request gets a fixed answer other than a problem, for any body. */
  get hasFixedAnswer(): boolean {
    return this.verdict !== undefined && !("code" in this.verdict);
  }

  /**
   * The body contains the key of a project, or the check for keys is off. A body with a fixed
   * answer counts as one without a key.
   */
  get isKnown(): boolean {
    return !this.hasFixedAnswer && (this.hint === undefined || this.hint.projectId !== undefined);
  }

  get showsProject(): boolean {
    return this.hint?.projectId !== undefined;
  }

  /** The body is large by the bytes that it holds or, if that is more, announces. */
  get isLarge(): boolean {
    return this.#admission.isLarge(this.#bytesWith(0));
  }

  /** Takes bytes of the budget for a body that grows or is repaired, or returns false. */
  tryHold(bytes: number): boolean {
    const requestBytes = this.#bytesWith(bytes);
    const isGrowing = this.state !== BodyState.Taken;
    if (isGrowing && this.#admission.isLarge(requestBytes)) this.#growing.add(this);
    if (!this.#admission.tryTake(bytes, requestBytes)) return false;
    this.bytesHeld += bytes;
    return true;
  }

  /** How many bytes the budget lacks for `tryHold` to return true. */
  lacking(bytes: number): number {
    return this.#admission.lacking(bytes, this.#bytesWith(bytes));
  }

  /**
   * Peeks at the part of the body that has arrived or was inflated, unless an earlier peek has
   * found everything.
   */
  peek(bytes: Buffer, isWhole: boolean): void {
    const { hint } = this;
    if (this.taker !== undefined) return;
    if (hint?.projectId !== undefined && (!isWhole || hint.lane !== undefined)) return;
    const apiKey = this.request.v1?.apiKey ?? this.conversion?.head.apiKey;
    this.hint = this.#peek?.(bytes, isWhole, apiKey);
  }

  /**
   * Discards the body; the request is answered with the verdict at the body's end. The first
   * verdict counts.
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

  /**
   * Called when the body is whole and unpacked: the intake owns it now, and it is not evicted any
   * more.
   */
  handOver(): void {
    this.state = BodyState.Taken;
    this.stopGrowing();
  }

  stopGrowing(): void {
    this.#growing.delete(this);
  }

  /** Frees the memory of the body, whose layer has been unpacked or is no longer needed. */
  freeBuffer(): void {
    this.buffer?.free();
    this.buffer = undefined;
  }

  /** Releases the budget's bytes that the body holds, and its memory. */
  release(): void {
    this.stopGrowing();
    if (this.bytesHeld > 0) this.#admission.release(this.bytesHeld);
    this.bytesHeld = 0;
    this.freeBuffer();
  }

  /** Stops the work on a body that is waiting, because its request has its answer. */
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
