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
  /** Called in addition to requestFinished. */
  problemAnswered(code: ErrorCode): void;
  /** Counts a disconnect of a client before its answer. */
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
   * Requests that have not ended. If the client has disconnected, a request ends once the intake
   * cannot answer any more.
   */
  inflight: number;
  draining: boolean;
  /** Limits the requests that are answered as they are read, per event loop iteration. */
  readonly atOnce: TurnBudget;
  /** Reports, during a drain, that no request is in flight any more. */
  idle: () => void;
}
