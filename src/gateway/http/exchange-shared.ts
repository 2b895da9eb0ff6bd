// Declares the parts that all exchanges of one server share, and their clock and metrics.

import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import type { ErrorCode } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import type { TurnBudget } from "../../platform/base/turn-budget.ts";
import type { ChunkedBody, ChunkSenders, ChunkTurns } from "../body/chunk-turns.ts";
import type { GrowingBodies } from "../body/growing-bodies.ts";
import type { RequestBody, RequestPhase } from "../body/request-body.ts";
import type { Admission } from "../intake/admission.ts";
import type { UnreadAnswers } from "./client/unread-answers.ts";
import type { RouteLabel } from "./endpoints.ts";
import type { LongAnswers } from "./long-answers.ts";
import type { Peek } from "./port.ts";
import type { ReplyWriter } from "./reply.ts";

export interface HttpMetrics {
  requestFinished(route: RouteLabel, status: number, seconds: number, bodyBytes: number): void;
  /** Called once for an answer that is an error, in addition to requestFinished. */
  problemAnswered(code: ErrorCode): void;
  /**
   * Called when a client disconnects before its answer; `phase` is the state of its request then.
   */
  requestAborted(phase: RequestPhase): void;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  wallMs(): number;
  /** Milliseconds of a clock that never goes back. */
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
  /** Undefined without the connection addon. */
  readonly unread?: UnreadAnswers | undefined;
  /**
   * Requests whose head has arrived and that are not done. A request is done once it is answered
   * or, if its client has disconnected, once the intake has no answer left to give.
   */
  inflight: number;
  draining: boolean;
  /** Limits how many requests are answered as they are read, in one turn of the event loop. */
  readonly atOnce: TurnBudget;
  /** Called while draining, when no request is in flight any more. */
  idle: () => void;
}
