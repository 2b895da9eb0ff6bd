// Handles one HTTP request from its head to its one answer. The response is written once, and never
// after the client has disconnected.
//
//   open ─► deferred ─► open ─┬─► writing ─┬─► done
//    │          │             └────────────┘    ▲
//    └──────────┴─► gone (the client has ───────┘
//                   disconnected, the answer is still due)

import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import { type ErrorCode, errorTable, type Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { Log } from "../../platform/base/log.ts";
import type { RequestSpan } from "../../platform/base/tracing.ts";
import type { TurnBudget } from "../../platform/base/turn-budget.ts";
import { isKnownBot } from "../../rules/bots.ts";
import type { ChunkedBody, ChunkSenders, ChunkTurns } from "../body/chunk-turns.ts";
import type { GrowingBodies } from "../body/growing-bodies.ts";
import { RequestBody, type RequestPhase } from "../body/request-body.ts";
import type { Admission } from "../intake/admission.ts";
import { clientName, sdkName } from "./client/client-name.ts";
import type { OpenConnection } from "./client/connection-limits.ts";
import { atOnceBytesMax, type LongAnswers } from "./long-answers.ts";
import type { RouteLabel } from "./paths.ts";
import type { BodyHint, Exchange, IntakeReport, Peek, V1Request } from "./port.ts";
import {
  type FixedAnswer,
  type ReplyWriter,
  type Writing,
  type Written,
  writeFixed,
} from "./reply.ts";
import type { HttpResponse } from "./uws.ts";

/**
 * The limit is necessary because uWS reads the next request as soon as one is answered. Its buffer
 * can contain thousands of requests.
 */
export const ANSWERS_AT_ONCE_MAX = 128;

const CLOSED_AFTER_MS = 1_000;

/**
 * - `deferred`: the answer is known, and a later event loop iteration writes it.
 * - `writing`: a long answer is being sent, as fast as its client reads it.
 * - `gone`: the client has disconnected. A later answer is not written.
 */
type AnswerState = "open" | "deferred" | "writing" | "gone" | "done";

/** Copies of the request line and headers. uWS frees the originals when its handler returns. */
interface ExchangeHead {
  readonly label: RouteLabel;
  readonly path: string;
  readonly origin: string;
  readonly contentEncoding: string;
  readonly bytesDeclared: number;
  readonly clientAddress: string;
  readonly senderAddress: string;
  readonly connection: OpenConnection;
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
  span: RequestSpan | undefined = undefined;
  library = "";
  userAgent = "";
  querySentAtMs = Number.NaN;
  isReplay = false;
  v1: V1Request | undefined = undefined;
  headOnly = false;
  /**
   * This flag is true if the client does not read the answer (`beacon=1`). If the events are
   * stored, the answer is then 204.
   */
  answersNothing = false;
  close = false;
  /**
   * This flag is true if a proxy may treat the bytes after this request as part of its body. In
   * that case, the connection is closed after the answer. The answer is deferred, so that uWS
   * closes the connection if another request follows.
   */
  hasUncertainEnd = false;
  isBeingRead = false;
  #state: AnswerState = "open";
  /**
   * The response of uWS. It is undefined after the answer or a disconnect, because uWS would throw
   * on any access.
   */
  #response: HttpResponse | undefined;
  #stopWriting: (() => void) | undefined = undefined;
  #closing: NodeJS.Timeout | undefined = undefined;
  readonly #shared: ExchangeShared;
  readonly #connection: OpenConnection;

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
    this.#connection.request = this;
    shared.inflight++;
  }

  get isReceiving(): boolean {
    return this.body.phase !== "answer";
  }

  get isAnswering(): boolean {
    return this.#state === "writing";
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

  get isBot(): boolean {
    const connection = this.#connection;
    if (this.userAgent !== connection.agent) return isKnownBot(this.userAgent);
    connection.isBot ??= isKnownBot(this.userAgent);
    return connection.isBot;
  }

  /** The SDK's own name has precedence over the User-Agent, which may name its HTTP library. */
  get client(): string {
    const named = this.v1 === undefined ? "" : sdkName(this.v1.sdkInfo);
    return named || this.library || this.#agentName;
  }

  get #agentName(): string {
    const connection = this.#connection;
    if (this.userAgent !== connection.agent) return clientName(this.userAgent);
    connection.clientName ??= clientName(this.userAgent);
    return connection.clientName;
  }

  get isOver(): boolean {
    return this.#state !== "open";
  }

  hold(bytes: number): boolean {
    return this.body.tryHold(bytes);
  }

  answerStored(report: IntakeReport): void {
    const converted = this.body.conversion?.answer(report);
    if (converted !== undefined) {
      this.answer(converted);
      return;
    }
    if (this.#mustWait()) {
      this.#defer(() => this.answerStored(report));
      return;
    }
    const response = this.#finish();
    if (response === undefined) return;
    const { reply } = this.#shared;
    if (this.answersNothing) this.#closeAfter(reply.nothing(response, this));
    else reply.stored(response, report, this);
    this.#count(this.answersNothing ? 204 : 200);
  }

  answer(verdict: Problem | FixedAnswer): void {
    if ("code" in verdict) this.answerProblem(verdict);
    else this.answerFixed(verdict);
  }

  answerFixed(answer: FixedAnswer): void {
    if (this.#mustWait()) {
      this.#defer(() => this.answerFixed(answer));
      return;
    }
    const response = this.#response;
    if (response === undefined || this.#state !== "open") {
      this.#finish();
      return;
    }
    const { origin, headOnly } = this;
    const writing = this.#beginWriting(answer.status);
    this.#stopWriting = writeFixed(response, answer, { origin, headOnly, ...writing });
  }

  answerResults(text: Buffer, hasRetry: boolean): void {
    if (this.#mustWait()) {
      this.#defer(() => this.answerResults(text, hasRetry));
      return;
    }
    const isLong = text.length > atOnceBytesMax;
    if (isLong && this.#response !== undefined && this.#state === "open") {
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
    this.#closeAfter(this.#shared.reply.problem(response, problem, this));
    this.#shared.metrics.problemAnswered(problem.code);
    this.#shared.clientWarnings?.refused(this, problem);
    this.#count(errorTable[problem.code].status, problem.code);
  }

  /** The answer is deferred, because uWS still calls the handler for chunks that it has read. */
  rejectChunks(problem: Problem): void {
    this.#shared.chunkSenders.reject(this.body.senderAddress);
    this.close = true;
    this.#defer(() => this.answerProblem(problem));
  }

  rejectConnection(): void {
    this.#response?.close();
  }

  /** If the intake has already accepted the body, it still processes it. */
  abort(): void {
    this.#shared.chunks.gone(this);
    this.#stopWriting?.();
    if (this.#response === undefined) {
      clearTimeout(this.#closing);
      return;
    }
    this.#response = undefined;
    this.#shared.metrics.requestAborted(this.body.phase);
    this.span?.disconnected(this);
    const isTaken = this.#state === "open" && this.body.state === "taken";
    if (this.body.taker !== undefined) this.body.stopWork();
    if (isTaken || this.#state === "deferred") this.#state = "gone";
    else this.#finish();
  }

  /**
   * Restarts uWS's timeout of 8 to 12 seconds. uWS itself restarts it only every 160 KiB. A paused
   * request has no timeout.
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

  #mustWait(): boolean {
    if (this.#state !== "open") return false;
    if (!this.isBeingRead) return this.hasUncertainEnd;
    const { atOnce } = this.#shared;
    atOnce.spend(1);
    return this.hasUncertainEnd || atOnce.isOverspent;
  }

  #defer(answer: () => void): void {
    this.#state = "deferred";
    if (this.hasUncertainEnd) this.close = true;
    this.hasUncertainEnd = false;
    this.body.stopGrowing();
    this.body.stopWork();
    setImmediate(() => {
      if (this.#state === "deferred") this.#state = "open";
      answer();
    });
  }

  #writeResults(response: HttpResponse, text: Buffer, hasRetry: boolean): void {
    this.body.release();
    const writeHead = (): void => this.#shared.reply.writeResultsHead(response, hasRetry, this);
    const { close, sent } = this.#beginWriting(200);
    this.#stopWriting = this.#shared.long.write(response, text, { writeHead, close, sent });
  }

  #beginWriting(status: number): Writing {
    this.#shared.chunks.answered(this);
    this.#state = "writing";
    const sent = (mustClose: boolean): void => {
      this.#finish();
      this.#count(status);
      this.#closeAfter(mustClose ? "to be closed" : "done");
    };
    const { draining, long } = this.#shared;
    return { close: this.close || draining, sent, long };
  }

  #closeAfter(written: Written): void {
    if (written !== "to be closed") return;
    this.#closing = setTimeout(() => {
      this.#connection.closesWhenRead = true;
    }, CLOSED_AFTER_MS);
  }

  /** Ends the request. Must be called exactly once. Returns undefined if nothing can be written. */
  #finish(): HttpResponse | undefined {
    const shared = this.#shared;
    if (this.#state === "done" || this.#state === "deferred") {
      shared.log.error(
        { route: this.label },
        "bug: a request got a second response, which was discarded",
      );
      return undefined;
    }
    // This comes before `#response` is cleared, because `answered` may use it to resume reading.
    shared.chunks.answered(this);
    const response = this.#response;
    this.#response = undefined;
    this.#state = "done";
    this.#connection.requestEnded();
    this.body.end();
    shared.inflight--;
    if (shared.draining) {
      this.close = true;
      if (shared.inflight === 0) shared.idle();
    }
    return response;
  }

  #count(status: number, code?: ErrorCode): void {
    const seconds = (this.#shared.clock.monotonicMs() - this.body.startedMs) / 1_000;
    this.#shared.metrics.requestFinished(this.label, status, seconds, this.body.bytesArrived);
    if (this.span !== undefined) this.span.answered(status, code, this);
  }
}

export interface HttpMetrics {
  requestFinished(route: RouteLabel, status: number, seconds: number, bodyBytes: number): void;
  problemAnswered(code: ErrorCode): void;
  requestAborted(phase: RequestPhase): void;
}

export interface Clock {
  wallMs(): number;
  monotonicMs(): number;
}

export interface ExchangeShared {
  readonly admission: Admission;
  readonly clock: Clock;
  readonly log: Pick<Log, "error">;
  readonly metrics: HttpMetrics;
  readonly clientWarnings: ClientWarningTaker | undefined;
  readonly reply: ReplyWriter;
  readonly growing: GrowingBodies<RequestBody>;
  readonly chunks: ChunkTurns<ChunkedBody>;
  readonly chunkSenders: ChunkSenders;
  readonly long: LongAnswers;
  readonly peek: Peek | undefined;
  inflight: number;
  draining: boolean;
  readonly atOnce: TurnBudget;
  idle: () => void;
}
