// Follows one HTTP request from its head to its one answer. Writes the response once, and never
// after the client has disconnected. At the end of the request, releases the bytes that it holds,
// and no longer counts it as in flight.
//
//   open ─► deferred ─► open ─┬─► writing ─┬─► done
//    │          │             └────────────┘    ▲
//    └──────────┴─► gone (the client has ───────┘
//                   disconnected, the answer is still due)

import { errorTable, type Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import { BodyState, RequestBody } from "../body/request-body.ts";
import { clientName, sdkName } from "./client/client-name.ts";
import type { OpenConnection } from "./client/connection-limits.ts";
import type { RouteLabel } from "./endpoints.ts";
import type { ExchangeShared } from "./exchange-shared.ts";
import type { FixedAnswer } from "./pages/fixed-answer.ts";
import { atOnceBytesMax } from "./piecewise.ts";
import type { BodyHint, Exchange, IntakeReport, V1Request } from "./port.ts";
import type { Written } from "./reply.ts";
import type { HttpResponse } from "./uws.ts";
import { type Writing, writeFixed } from "./write-fixed.ts";

/**
 * Maximum number of requests that are answered as they are read, per event loop iteration. Later
 * answers are written once the iteration has read all its data. One buffer can contain thousands of
 * such requests: uWS continues through the buffer while each request is answered before the next
 * one.
 */
export const ANSWERS_AT_ONCE_MAX = 128;

/** Milliseconds after which the server closes a connection that its client should close. */
const CLOSED_AFTER_MS = 1_000;

const AnswerState = {
  /** The request has no answer yet. */
  Open: "open",
  /** The answer is known, and is written in a later event loop iteration. */
  Deferred: "deferred",
  /** A long answer is sent as its client reads it. */
  Writing: "writing",
  /**
   * The client has disconnected. The intake, or the event loop iteration to which the answer was
   * deferred, will still answer; that answer is dropped.
   */
  Gone: "gone",
  /** The request is answered, or no longer needs an answer. */
  Done: "done",
} as const;
type AnswerState = (typeof AnswerState)[keyof typeof AnswerState];

/** The data of a request's head, which uWS releases once the head has been handled. */
interface ExchangeHead {
  readonly label: RouteLabel;
  /** The path for display: shortened, and without possible keys. */
  readonly path: string;
  readonly origin: string;
  /** Content-Encoding as sent, "" if absent. */
  readonly contentEncoding: string;
  /** Content-Length in bytes, or -1 if absent. */
  readonly bytesDeclared: number;
  readonly clientAddress: string;
  readonly senderAddress: string;
  readonly connection: OpenConnection | undefined;
}

export class HttpExchange implements Exchange {
  readonly label: RouteLabel;
  readonly path: string;
  readonly origin: string;
  readonly clientAddress: string;
  readonly receivedAtMs: number;
  readonly body: RequestBody;
  deadlineMs = 0;
  projectId = "";
  lane: Lane | undefined = undefined;
  library = "";
  /**
   * The User-Agent of this request, if its connection may belong to a proxy, which forwards the
   * requests of many clients. Otherwise the client name derived from the User-Agent of the
   * connection's first request.
   */
  userAgent = "";
  querySentAtMs = Number.NaN;
  v1: V1Request | undefined = undefined;
  /** Whether the request is a HEAD: its answer has no body. */
  headOnly = false;
  /** Whether the client reads no answer to stored events (`beacon=1`): the answer is then 204. */
  answersNothing = false;
  /** Whether the connection ends with the answer. */
  close = false;
  /**
   * Whether a proxy in front may treat the bytes after this request as part of its body, while this
   * server treats them as another request. If so, the connection ends with the answer, and the
   * answer is written in a later event loop iteration. If a request arrives before the previous one
   * is answered, uWS ends the connection; otherwise uWS continues reading.
   */
  hasUncertainEnd = false;
  /**
   * Whether the last piece of the body is being read. An answer written at this time precedes the
   * reading of the data after this request.
   */
  isBeingRead = false;
  #state: AnswerState = AnswerState.Open;
  /**
   * The response; undefined once the request is answered or its client has disconnected, because
   * uWS throws if a response is touched after that.
   */
  #response: HttpResponse | undefined;
  /** Stops a long answer that is being written. */
  #stopWriting: (() => void) | undefined = undefined;
  #closing: NodeJS.Timeout | undefined = undefined;
  readonly #shared: ExchangeShared;
  readonly #connection: OpenConnection | undefined;

  constructor(shared: ExchangeShared, response: HttpResponse, head: ExchangeHead) {
    this.#shared = shared;
    this.#response = response;
    this.label = head.label;
    this.path = head.path;
    this.origin = head.origin;
    this.clientAddress = head.clientAddress;
    this.receivedAtMs = shared.clock.wallMs();
    this.body = new RequestBody({
      request: this,
      admission: shared.admission,
      growing: shared.growing,
      peek: shared.peek,
      startedMs: shared.clock.monotonicMs(),
      bytesDeclared: head.bytesDeclared,
      contentEncoding: head.contentEncoding,
      senderAddress: head.senderAddress,
    });
    this.#connection = head.connection;
    if (head.connection !== undefined) head.connection.request = this;
    shared.inflight++;
  }

  /** Whether the client has not sent all of the request. */
  get isReceiving(): boolean {
    return this.body.phase !== "answer";
  }

  /** Whether a long answer is being written. */
  get isAnswering(): boolean {
    return this.#state === AnswerState.Writing;
  }

  get isV1(): boolean {
    return this.label === "v1";
  }

  get isEngage(): boolean {
    return this.label === "engage";
  }

  get bytesArrived(): number {
    return this.body.bytesArrived;
  }

  get hint(): BodyHint | undefined {
    return this.body.hint;
  }

  /**
   * The client's name. The SDK's own name has precedence over the User-Agent, which may be that of
   * the SDK's HTTP library. An SDK of the newer protocol names itself in a header, any other SDK in
   * the body.
   */
  get client(): string {
    const named = this.v1 === undefined ? "" : sdkName(this.v1.sdkInfo);
    return named || this.library || clientName(this.userAgent);
  }

  /**
   * Whether the request has its answer, or its client has disconnected. If so, later results must
   * be ignored.
   */
  get isOver(): boolean {
    return this.#state !== AnswerState.Open;
  }

  hold(bytes: number): boolean {
    return this.body.tryHold(bytes);
  }

  answerStored(report: IntakeReport): void {
    const converted = this.body.conversion?.answer(report);
    if (converted !== undefined) {
      if ("code" in converted) this.answerProblem(converted);
      else this.answerFixed(converted);
      return;
    }
    if (this.#mustWait()) {
      this.#defer(() => this.answerStored(report));
      return;
    }
    const response = this.#finish();
    if (response === undefined) return;
    const { reply } = this.#shared;
    if (this.answersNothing) this.#closeAfter(response, reply.nothing(response, this));
    else reply.stored(response, report, this);
    this.#count(this.answersNothing ? 204 : 200);
  }

  answerFixed(answer: FixedAnswer): void {
    if (this.#mustWait()) {
      this.#defer(() => this.answerFixed(answer));
      return;
    }
    const response = this.#response;
    if (response === undefined || this.#state !== AnswerState.Open) {
      this.#finish();
      return;
    }
    const { origin, headOnly } = this;
    const writing = this.#beginWriting(response, answer.status);
    this.#stopWriting = writeFixed(response, answer, { origin, headOnly, ...writing });
  }

  answerResults(text: Buffer, hasRetry: boolean): void {
    if (this.#mustWait()) {
      this.#defer(() => this.answerResults(text, hasRetry));
      return;
    }
    const isLong = text.length > atOnceBytesMax;
    if (isLong && this.#response !== undefined && this.#state === AnswerState.Open) {
      this.#writeResults(this.#response, text, hasRetry);
      return;
    }
    const response = this.#finish();
    if (response === undefined) return;
    this.#shared.reply.results(response, { text, hasRetry }, this);
    this.#count(200);
  }

  get senderAddress(): string {
    return this.body.senderAddress;
  }

  answerProblem(problem: Problem): void {
    if (this.#mustWait()) {
      this.#defer(() => this.answerProblem(problem));
      return;
    }
    const response = this.#finish();
    if (response === undefined) return;
    this.#closeAfter(response, this.#shared.reply.problem(response, problem, this));
    this.#shared.metrics.problemAnswered(problem.code);
    this.#shared.clientWarnings?.refused(this, problem);
    this.#count(errorTable[problem.code].status);
  }

  /**
   * Refuses the rest of a body because its chunks are too small, and ends the connection with the
   * answer. The answer is written in a later event loop iteration: after the answer, nothing can
   * stop uWS from calling back for each further chunk that it has read.
   */
  refuseChunks(problem: Problem): void {
    this.#shared.chunkSenders.reject(this.body.senderAddress);
    this.close = true;
    this.#defer(() => this.answerProblem(problem));
  }

  /** Ends the connection without an answer. Unprocessed data of the connection is ignored. */
  rejectConnection(): void {
    this.#response?.close();
  }

  /**
   * Handles a disconnect of the client. A body that the intake has accepted is still processed; the
   * answer is dropped.
   */
  abort(): void {
    this.#shared.chunks.gone(this);
    this.#stopWriting?.();
    if (this.#response === undefined) {
      clearTimeout(this.#closing);
      return;
    }
    this.#response = undefined;
    this.#shared.metrics.requestAborted(this.body.phase);
    const isTaken = this.#state === AnswerState.Open && this.body.state === BodyState.Taken;
    if (this.body.taker !== undefined) this.body.stopWork();
    if (isTaken || this.#state === AnswerState.Deferred) this.#state = AnswerState.Gone;
    else this.#finish();
  }

  /**
   * Restarts uWS's timeout, which gives the client 8 to 12 seconds to send another 160 KiB. Does
   * nothing for a paused request, which has no timeout.
   */
  keepOpen(): void {
    if (this.#shared.chunks.isPaused(this)) return;
    this.#response?.pause();
    this.#response?.resume();
  }

  pauseReading(): void {
    this.#response?.pause();
  }

  resumeReading(): void {
    this.#response?.resume();
  }

  /**
   * Returns whether the answer must be deferred to a later event loop iteration. If the request
   * would be answered as it is read, counts it against the budget of the iteration, whatever the
   * result.
   */
  #mustWait(): boolean {
    if (this.#state !== AnswerState.Open) return false;
    if (!this.isBeingRead) return this.hasUncertainEnd;
    const { atOnce } = this.#shared;
    atOnce.spend(1);
    return this.hasUncertainEnd || atOnce.isOverspent;
  }

  #defer(answer: () => void): void {
    this.#state = AnswerState.Deferred;
    if (this.hasUncertainEnd) this.close = true;
    this.hasUncertainEnd = false;
    // The answer is final. Until it is written the body cannot be evicted, and work on the body
    // stops.
    this.body.stopGrowing();
    this.body.stopWork();
    setImmediate(() => {
      if (this.#state === AnswerState.Deferred) this.#state = AnswerState.Open;
      answer();
    });
  }

  #writeResults(response: HttpResponse, text: Buffer, hasRetry: boolean): void {
    this.body.release();
    const writeHead = (): void => this.#shared.reply.writeResultsHead(response, hasRetry, this);
    const { close, sent } = this.#beginWriting(response, 200);
    this.#stopWriting = this.#shared.long.write(response, text, { writeHead, close, sent });
  }

  /**
   * Starts a long answer. Until all of it is passed to the socket, the request is in flight, and
   * its client may abort the request.
   */
  #beginWriting(response: HttpResponse, status: number): Writing {
    this.#shared.chunks.answered(this);
    this.#state = AnswerState.Writing;
    const sent = (mustClose: boolean): void => {
      this.#finish();
      this.#count(status);
      this.#closeAfter(response, mustClose ? "to be closed" : "done");
    };
    const { draining, long } = this.#shared;
    return { close: this.close || draining, sent, long };
  }

  #closeAfter(response: HttpResponse, written: Written): void {
    if (written !== "to be closed") return;
    const connection = this.#connection;
    // If the connection is known, it closes once its client has read the rest of the answer.
    const canWait = connection !== undefined && this.#shared.unread !== undefined;
    this.#closing = setTimeout(() => {
      if (canWait) connection.closesWhenRead = true;
      else response.close();
    }, CLOSED_AFTER_MS);
  }

  /**
   * Ends the request; must be called only once. Returns the response if it can still be written to.
   */
  #finish(): HttpResponse | undefined {
    const shared = this.#shared;
    if (this.#state === AnswerState.Done || this.#state === AnswerState.Deferred) {
      shared.log.error({ route: this.label }, "request answered twice");
      return undefined;
    }
    // `answered` may resume reading through `#response`, so the call precedes the clearing of that
    // field.
    shared.chunks.answered(this);
    const response = this.#response;
    this.#response = undefined;
    this.#state = AnswerState.Done;
    this.#connection?.requestEnded();
    this.body.end();
    shared.inflight--;
    if (shared.draining) {
      this.close = true;
      if (shared.inflight === 0) shared.idle();
    }
    return response;
  }

  #count(status: number): void {
    const seconds = (this.#shared.clock.monotonicMs() - this.body.startedMs) / 1_000;
    this.#shared.metrics.requestFinished(this.label, status, seconds, this.body.bytesArrived);
  }
}
