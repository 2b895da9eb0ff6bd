// One HTTP request from its head to its one answer. Sees to it that a response is written once,
// never after the client has gone, and that bytes and counts are given back.
//
//   open ─► put off ─► open ─┬─► writing ─┬─► done
//    │         │             └────────────┘    ▲
//    └─────────┴─► gone (the client has left, ─┘
//                  somebody will still answer)

import { errorTable, type Problem } from "../base/errors.ts";
import type { BodyHint, Exchange, IntakeReport, V1Request } from "../base/types.ts";
import { BodyState, RequestBody } from "./body/request-body.ts";
import { clientName, sdkName } from "./client/client-name.ts";
import type { RouteLabel } from "./endpoints.ts";
import type { ExchangeShared } from "./exchange-shared.ts";
import type { FixedAnswer } from "./pages/fixed-answer.ts";
import { atOnceBytesMax } from "./piecewise.ts";
import { type Written, writeResultsHead } from "./reply.ts";
import type { HttpResponse } from "./uws.ts";
import { writeFixed } from "./write-fixed.ts";

/**
 * So many requests are answered as they are read, in one turn of the event loop. Those beyond get
 * their answer when the turn has read all it has: such requests can stand in one buffer by the
 * thousand, and the library goes on through it for as long as each is answered before the next.
 */
export const ANSWERS_AT_ONCE_MAX = 128;

/** A client that was told that the connection ends has so long to end it itself. */
const CLOSED_AFTER_MS = 1_000;

const AnswerState = {
  /** It has no answer yet. */
  Open: "open",
  /** Its answer is known, and comes in a turn of its own. */
  PutOff: "put off",
  /** A long answer goes out as its client reads it. */
  Writing: "writing",
  /** The client has left. The intake, or the turn that was waited for, will still answer. */
  Gone: "gone",
  /** It is answered, or needs no answer any more. */
  Done: "done",
} as const;
type AnswerState = (typeof AnswerState)[keyof typeof AnswerState];

/** What the head of a request says, which uWS forgets once the head has been handled. */
export interface ExchangeHead {
  readonly label: RouteLabel;
  /** The path as people who watch may see it. */
  readonly path: string;
  readonly origin: string;
  /** Content-Encoding as sent, "" for none. */
  readonly contentEncoding: string;
  /** Content-Length, or -1 for none. */
  readonly bytesDeclared: number;
  readonly clientAddress: string;
  readonly senderAddress: string;
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
  library = "";
  /**
   * The User-Agent of its connection's first request; of this one where a proxy's connection brings
   * the requests of many.
   */
  userAgent = "";
  querySentAtMs = Number.NaN;
  v1: V1Request | undefined = undefined;
  /** The request is a HEAD: its answer has no body. */
  headOnly = false;
  /** Nobody reads the answer to what is stored: it has no body. */
  answersNothing = false;
  /** The connection ends with the answer. */
  close = false;
  /**
   * What follows on the connection may be the rest of this request to a proxy before us, and
   * another request to us. So the connection ends with the answer, and the answer comes in a turn
   * of its own: uWS ends a connection on which a request comes before the answer to the one ahead
   * of it, and goes on reading where the answer is there already.
   */
  endsInDoubt = false;
  /**
   * Its last piece is being read: an answer that comes now comes before uWS reads what is behind
   * it.
   */
  isBeingRead = false;
  #state: AnswerState = AnswerState.Open;
  /** Undefined once answered or gone: uWS throws when a response is touched after that. */
  #response: HttpResponse | undefined;
  /** Stops a long answer that is being written. */
  #stopWriting: (() => void) | undefined = undefined;
  #closing: NodeJS.Timeout | undefined = undefined;
  readonly #shared: ExchangeShared;

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
    shared.inflight++;
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
   * What the SDK says of itself goes before what its HTTP library says: in the newer protocol in a
   * header, else in the body.
   */
  get client(): string {
    const named = this.v1 === undefined ? "" : sdkName(this.v1.sdkInfo);
    return named || this.library || clientName(this.userAgent);
  }

  /** Answered or left by its client: what still comes for it is to be ignored. */
  get isOver(): boolean {
    return this.#state !== AnswerState.Open;
  }

  answerStored(report: IntakeReport): void {
    if (this.#mustWait()) {
      this.#putOff(() => this.answerStored(report));
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
      this.#putOff(() => this.answerFixed(answer));
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
      this.#putOff(() => this.answerResults(text, hasRetry));
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

  answerProblem(problem: Problem): void {
    if (this.#mustWait()) {
      this.#putOff(() => this.answerProblem(problem));
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
   * Answers now, in the middle of a body in too small chunks: what more of it has come is not read.
   */
  answerAndEnd(problem: Problem): void {
    this.#shared.chunkSenders.tell(this.body.senderAddress);
    this.endsInDoubt = false;
    this.close = true;
    this.answerProblem(problem);
  }

  /** Ends the connection without an answer, at the head: nothing behind the head is read then. */
  rejectConnection(): void {
    this.#response?.close();
  }

  /** The client is gone. What the intake has taken goes on; its late answer is dropped. */
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
    if (isTaken || this.#state === AnswerState.PutOff) this.#state = AnswerState.Gone;
    else this.#finish();
  }

  /**
   * Gives the client 8 to 12 seconds more to send 160 KiB: uWS begins to count anew when a request
   * is resumed.
   */
  keepOpen(): void {
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
   * Whether the answer is to come in a turn of its own. Counts the requests that are answered as
   * they are read, be they stored, dropped or refused.
   */
  #mustWait(): boolean {
    if (this.#state !== AnswerState.Open) return false;
    if (!this.isBeingRead) return this.endsInDoubt;
    const { atOnce } = this.#shared;
    atOnce.spend(1);
    return this.endsInDoubt || atOnce.isOverspent;
  }

  #putOff(answer: () => void): void {
    this.#state = AnswerState.PutOff;
    if (this.endsInDoubt) this.close = true;
    this.endsInDoubt = false;
    // It has its answer: until then it is not evicted, and what is done for its body stops.
    this.body.stopGrowing();
    this.body.stopWork();
    setImmediate(() => {
      if (this.#state === AnswerState.PutOff) this.#state = AnswerState.Open;
      answer();
    });
  }

  #writeResults(response: HttpResponse, text: Buffer, hasRetry: boolean): void {
    this.body.release();
    const writeHead = (): void => writeResultsHead(response, hasRetry, this.origin);
    const writing = this.#beginWriting(response, 200);
    this.#stopWriting = this.#shared.long.write(response, text, { writeHead, ...writing });
  }

  /** Until the answer is handed over whole, the request goes on, and may be aborted. */
  #beginWriting(
    response: HttpResponse,
    status: number,
  ): { close: boolean; sent: (mustClose: boolean) => void } {
    this.#shared.chunks.answered(this);
    this.#state = AnswerState.Writing;
    const sent = (mustClose: boolean): void => {
      this.#finish();
      this.#count(status);
      this.#closeAfter(response, mustClose ? "to be closed" : "done");
    };
    return { close: this.close || this.#shared.draining, sent };
  }

  #closeAfter(response: HttpResponse, written: Written): void {
    if (written === "to be closed")
      this.#closing = setTimeout(() => response.close(), CLOSED_AFTER_MS);
  }

  /** Ends the request once. Returns the response, if there is one to write. */
  #finish(): HttpResponse | undefined {
    const shared = this.#shared;
    if (this.#state === AnswerState.Done || this.#state === AnswerState.PutOff) {
      shared.log.error({ route: this.label }, "Answer a request: it was answered before");
      return undefined;
    }
    // While there is a response to go on with.
    shared.chunks.answered(this);
    const response = this.#response;
    this.#response = undefined;
    this.#state = AnswerState.Done;
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
