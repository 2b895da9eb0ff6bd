// One HTTP request from its head to its one answer. Holds what the body reader and the intake need,
// and sees to it that a response is written once, never after the client has gone, and that bytes
// and counts are given back.

import { errorTable, type Problem } from "../base/errors.ts";
import type { BodyHint, Exchange, IntakeReport, Route, V1Request } from "../base/types.ts";
import type { BodyBuffer } from "./body/body-buffer.ts";
import type { Compression } from "./body/codings.ts";
import { clientName, sdkName } from "./client/client-name.ts";
import type { ExchangeHead } from "./exchange-head.ts";
import type { AbortPhase, ExchangeShared } from "./exchange-shared.ts";
import type { FixedAnswer } from "./pages/fixed-answer.ts";
import { atOnceBytesMax } from "./piecewise.ts";
import { type Written, writeResultsHead } from "./reply.ts";
import type { SdkRouteLabel } from "./sdk-requests.ts";
import type { HttpResponse } from "./uws.ts";
import { writeFixed } from "./write-fixed.ts";

/**
 * Requests answered as they are read, in one turn of the event loop. Those beyond get their answer
 * when the turn has read all it has: such requests can stand in one buffer by the thousand, and the
 * library goes on through it for as long as each is answered before the next.
 */
export const ANSWERS_AT_ONCE_MAX = 128;

/** A client that was told that the connection ends is let end it. */
const CLOSED_AFTER_MS = 1_000;

/** The path as a bounded label: `other` is every path at which there is nothing. */
export type RouteLabel = Route | SdkRouteLabel | "other";

export class HttpExchange implements Exchange {
  readonly label: RouteLabel;
  readonly path: string;
  readonly origin: string;
  /** Of what is to be unpacked. */
  contentEncoding: string;
  readonly bytesDeclared: number;
  readonly clientAddress: string;
  /**
   * The client's, whether addresses are recorded or not: tells senders apart while the request
   * lasts, and goes nowhere else.
   */
  readonly senderAddress: string;
  readonly receivedAtMs: number;
  readonly startedMs: number;
  deadlineMs = 0;
  projectId = "";
  library = "";
  /**
   * As its connection's first request has said it, or this one where a proxy's brings the requests
   * of many.
   */
  userAgent = "";
  hint: BodyHint | undefined = undefined;
  /** The request is a HEAD: its answer has no body. */
  headOnly = false;
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
   * Its last piece is being read: an answer that comes now comes before uWS looks at what is behind
   * it.
   */
  isBeingRead = false;
  #isPutOff = false;
  /** As the query names it, or where that does not, the form. */
  compression: Compression | undefined = undefined;
  /** What has been taken off the body: see payload-form.ts. */
  layers = 0;
  /** A payload in the query, as it stands there; "" for none. */
  queryData = "";
  sentAtMs = Number.NaN;
  /** Nobody reads the answer to what is stored: it has no body. */
  answersNothing = false;
  v1: V1Request | undefined = undefined;
  phase: AbortPhase = "head";
  bytesArrived = 0;
  /** In which the body has come so far. */
  pieces = 0;
  bytesChecked = 0;
  idleChecks = 0;
  /** So much had come when it was last looked at for its key. */
  bytesLookedAt = 0;
  /** Bytes of the admission budget this request holds. */
  bytesHeld = 0;
  buffer: BodyBuffer | undefined = undefined;
  /**
   * What is answered once the body has come, whatever more of it comes: that is thrown away. A
   * problem, or all that is answered here.
   */
  verdict: Problem | FixedAnswer | undefined = undefined;
  /** Stops work on the body that the intake has not seen yet. */
  cancel: (() => void) | undefined = undefined;
  /** The intake has had the body, and will answer. */
  taken = false;
  /** Undefined once answered or gone: uWS throws when a response is touched after that. */
  #response: HttpResponse | undefined;
  /** Of a long answer that is being written. */
  #stopWriting: (() => void) | undefined = undefined;
  #done = false;
  #closing: NodeJS.Timeout | undefined = undefined;
  readonly #shared: ExchangeShared;

  constructor(shared: ExchangeShared, response: HttpResponse, head: ExchangeHead) {
    this.#shared = shared;
    this.#response = response;
    this.label = head.label;
    this.path = head.path;
    this.origin = head.origin;
    this.contentEncoding = head.contentEncoding;
    this.bytesDeclared = head.bytesDeclared;
    this.clientAddress = head.clientAddress;
    this.senderAddress = head.senderAddress;
    this.receivedAtMs = shared.clock.wallMs();
    this.startedMs = shared.clock.monotonicMs();
    shared.inflight++;
  }

  /** Nothing that came before the body says that it is packed. */
  get isPlain(): boolean {
    return this.contentEncoding === "" && this.compression === undefined;
  }

  get isV1(): boolean {
    return this.label === "v1";
  }

  get isEngage(): boolean {
    return this.label === "engage";
  }

  /**
   * What the SDK says of itself goes before what its HTTP library says: in the newer protocol in a
   * header, else in the body.
   */
  get client(): string {
    const named = this.v1 === undefined ? "" : sdkName(this.v1.sdkInfo);
    return named || this.library || clientName(this.userAgent);
  }

  /** Answered or aborted: what still comes for it is to be ignored. */
  get over(): boolean {
    return this.#response === undefined || this.#isPutOff;
  }

  answerStored(report: IntakeReport): void {
    if (this.#comesLater() && this.#putsOff(() => this.answerStored(report))) return;
    const response = this.#finish();
    if (response === undefined) return;
    if (this.answersNothing)
      this.#closesAfter(response, this.#shared.reply.nothing(response, this));
    else this.#shared.reply.stored(response, report, this);
    this.#count(this.answersNothing ? 204 : 200);
  }

  answerFixed(answer: FixedAnswer): void {
    if (this.#comesLater() && this.#putsOff(() => this.answerFixed(answer))) return;
    const response = this.#response;
    if (response === undefined) {
      this.#finish();
      return;
    }
    const { origin, headOnly } = this;
    this.#stopWriting = writeFixed(response, answer, {
      origin,
      headOnly,
      ...this.#beginWriting(response, answer.status),
    });
  }

  answerResults(text: Buffer, hasRetry: boolean): void {
    if (this.#comesLater() && this.#putsOff(() => this.answerResults(text, hasRetry))) return;
    if (text.length > atOnceBytesMax && this.#response !== undefined) {
      this.#writeResults(this.#response, text, hasRetry);
      return;
    }
    const response = this.#finish();
    if (response === undefined) return;
    this.#shared.reply.results(response, { text, hasRetry }, this);
    this.#count(200);
  }

  #writeResults(response: HttpResponse, text: Buffer, hasRetry: boolean): void {
    this.release();
    const writeHead = (): void => writeResultsHead(response, hasRetry, this.origin);
    this.#stopWriting = this.#shared.long.write(response, text, {
      writeHead,
      ...this.#beginWriting(response, 200),
    });
  }

  /** Until the answer is handed over whole, the request goes on, and may be aborted. */
  #beginWriting(
    response: HttpResponse,
    status: number,
  ): { close: boolean; sent: (mustClose: boolean) => void } {
    this.#isPutOff = false;
    this.taken = false;
    const sent = (mustClose: boolean): void => {
      this.#finish();
      this.#count(status);
      this.#closesAfter(response, mustClose ? "to be closed" : "done");
    };
    return { close: this.close || this.#shared.draining, sent };
  }

  answerProblem(problem: Problem): void {
    if (this.#comesLater() && this.#putsOff(() => this.answerProblem(problem))) return;
    const response = this.#finish();
    if (response === undefined) return;
    this.#closesAfter(response, this.#shared.reply.problem(response, problem, this));
    this.#shared.metrics.problemAnswered(problem.code);
    this.#shared.clientWarnings?.refused(this, problem);
    this.#count(errorTable[problem.code].status);
  }

  /**
   * Answers now, in the middle of a body in too small chunks: what more of it has come is not read.
   */
  answerAndEnd(problem: Problem): void {
    this.#shared.chunkSenders.tell(this.senderAddress);
    this.endsInDoubt = false;
    this.close = true;
    this.answerProblem(problem);
  }

  /** Counts it where it is answered as it is read, be it stored, dropped or refused. */
  #comesLater(): boolean {
    if (!this.isBeingRead || this.#isPutOff) return this.endsInDoubt;
    const { atOnce } = this.#shared;
    atOnce.spend(1);
    return this.endsInDoubt || atOnce.isOverspent;
  }

  #closesAfter(response: HttpResponse, written: Written): void {
    if (written === "to be closed")
      this.#closing = setTimeout(() => response.close(), CLOSED_AFTER_MS);
  }

  /** The client is gone. What the intake has taken goes on; its late answer is dropped. */
  abort(): void {
    this.#shared.chunks.delete(this);
    this.#stopWriting?.();
    if (this.#response === undefined) {
      clearTimeout(this.#closing);
      return;
    }
    this.#response = undefined;
    this.#shared.metrics.requestAborted(this.phase);
    if (!this.taken && !this.#isPutOff) this.#finish();
  }

  #putsOff(answer: () => void): boolean {
    if (this.#isPutOff) return false;
    if (this.endsInDoubt) this.close = true;
    this.endsInDoubt = false;
    this.#isPutOff = true;
    // It has its answer: it gives way to nobody in the meantime, and is answered once.
    this.#shared.growing.delete(this);
    setImmediate(answer);
    return true;
  }

  /** Takes bytes out of the budget for a body that grows, or answers false. */
  tryHold(bytes: number): boolean {
    const { admission, growing } = this.#shared;
    const requestBytes = Math.max(this.bytesHeld + bytes, this.bytesDeclared);
    if (admission.isLarge(requestBytes)) growing.add(this);
    if (!admission.tryTake(bytes, requestBytes)) return false;
    this.bytesHeld += bytes;
    return true;
  }

  /** By what it holds or announces. */
  get isLarge(): boolean {
    return this.#shared.admission.isLarge(Math.max(this.bytesHeld, this.bytesDeclared));
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
   * Ends the connection at the head of the request, without an answer: nothing behind the head is
   * read then.
   */
  turnAway(): void {
    this.#response?.close();
  }

  /** It is answered well, and its body makes no difference. */
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

  /**
   * Looks at what has come of the body, or of what it inflates to, unless that has told all
   * already.
   */
  look(bytes: Buffer, isWhole: boolean): void {
    const { hint } = this;
    if (hint?.projectId !== undefined && (!isWhole || hint.lane !== undefined)) return;
    this.hint = this.#shared.look?.(bytes, isWhole, this.v1?.apiKey);
  }

  /** What the budget lacks for tryHold to answer true. */
  lacking(bytes: number): number {
    return this.#shared.admission.lacking(
      bytes,
      Math.max(this.bytesHeld + bytes, this.bytesDeclared),
    );
  }

  /** The body is what it will be: it is the intake's now. */
  grown(): void {
    this.taken = true;
    this.#shared.growing.delete(this);
  }

  /** Gives back the body's bytes and memory. */
  release(): void {
    this.#shared.growing.delete(this);
    if (this.bytesHeld > 0) this.#shared.admission.release(this.bytesHeld);
    this.bytesHeld = 0;
    this.buffer?.free();
    this.buffer = undefined;
  }

  /** Ends the request once. The response, if there is one to write. */
  #finish(): HttpResponse | undefined {
    const response = this.#response;
    this.#response = undefined;
    if (this.#done) {
      this.#shared.log.error({ route: this.label }, "Answer a request: it was answered before");
      return undefined;
    }
    this.#done = true;
    this.#shared.chunks.delete(this);
    if (this.cancel !== undefined) this.cancel();
    this.cancel = undefined;
    this.release();
    const shared = this.#shared;
    shared.inflight--;
    if (shared.draining) {
      this.close = true;
      if (shared.inflight === 0) shared.idle();
    }
    return response;
  }

  #count(status: number): void {
    const seconds = (this.#shared.clock.monotonicMs() - this.startedMs) / 1_000;
    this.#shared.metrics.requestFinished(this.label, status, seconds, this.bytesArrived);
  }
}
