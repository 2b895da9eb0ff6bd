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
  /** Counts an answer that is an error; called once, in addition to requestFinished. */
  problemAnswered(code: ErrorCode): void;
  /**
   * Counts a disconnect of a client before its answer; `phase` is the state of the request at that
   * time.
   */
  requestAborted(phase: RequestPhase): void;
}

export interface Clock {
  /** Returns milliseconds since the epoch. */
  wallMs(): number;
  /** Returns milliseconds of a clock that never goes back. */
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
  /** Tracks unread answers; undefined without the connection addon. */
  readonly unread?: UnreadAnswers | undefined;
  /**
   * Number of requests whose head has arrived and that have not ended. A request ends once it is
   * answered. If its client has disconnected, it ends once the intake cannot answer any more.
   */
  inflight: number;
  draining: boolean;
  /** Limits the number of requests that are answered as they are read, per event loop iteration. */
  readonly atOnce: TurnBudget;
  /** Reports, during a drain, that no request is in flight any more. */
  idle: () => void;
}
