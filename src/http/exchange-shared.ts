// What the exchanges of one server share, and what they ask of clock and metrics.

import type { ClientWarningTaker } from "../base/client-warning.ts";
import type { ErrorCode } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { TurnBudget } from "../base/turn-budget.ts";
import type { Admission, Peek } from "../base/types.ts";
import type { ChunkSenders } from "./body/chunk-senders.ts";
import type { ChunkedBody, ChunkTurns } from "./body/chunk-turns.ts";
import type { GrowingBodies } from "./body/growing-bodies.ts";
import type { RequestBody, RequestPhase } from "./body/request-body.ts";
import type { RouteLabel } from "./endpoints.ts";
import type { LongAnswers } from "./long-answers.ts";
import type { ReplyWriter } from "./reply.ts";

export interface HttpMetrics {
  requestFinished(route: RouteLabel, status: number, seconds: number, bodyBytes: number): void;
  /** Called once for an answer that is an error, beside requestFinished. */
  problemAnswered(code: ErrorCode): void;
  /** `phase`: where the request was when its client went. */
  requestAborted(phase: RequestPhase): void;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  wallMs(): number;
  /** Milliseconds that only go forward. */
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
  /**
   * Requests whose head has come and that are not done: not answered, nor given up by client and
   * intake.
   */
  inflight: number;
  draining: boolean;
  /** Requests that are answered as they are read, in this turn of the event loop. */
  readonly atOnce: TurnBudget;
  /** Called while draining, when the last request is done. */
  idle: () => void;
}
