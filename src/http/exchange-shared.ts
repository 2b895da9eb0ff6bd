// What the exchanges of one server share.

import type { Admission, EarlyLook, RemarkTaker } from "../types.ts";
import type { ChunkSenders } from "./chunk-senders.ts";
import type { ChunkTurns } from "./chunk-turns.ts";
import type { Clock, HttpExchange, HttpMetrics } from "./exchange.ts";
import type { HttpLog } from "./exchange-head.ts";
import type { GrowingBodies } from "./growing-bodies.ts";
import type { ReplyWriter } from "./reply.ts";
import type { TurnBudget } from "./turn-budget.ts";

export interface ExchangeShared {
  readonly admission: Admission;
  readonly clock: Clock;
  readonly log: HttpLog;
  readonly metrics: HttpMetrics;
  readonly remarks: RemarkTaker | undefined;
  readonly reply: ReplyWriter;
  readonly growing: GrowingBodies<HttpExchange>;
  readonly chunks: ChunkTurns<HttpExchange>;
  readonly chunkSenders: ChunkSenders;
  readonly look: EarlyLook | undefined;
  /** Requests whose head has come and that are not done: not answered, nor given up by client and intake. */
  inflight: number;
  draining: boolean;
  /** Requests that are answered as they are read, in this turn of the event loop. */
  readonly atOnce: TurnBudget;
  /** Called while draining, when the last request is done. */
  idle: () => void;
}
