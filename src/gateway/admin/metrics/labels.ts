// The counters. The hot path calls one method per request or frame, which adds to plain numbers.
// Label values are bounded: never a project, a key or a path that a client chose.

import type { ItemErrorCode } from "../../../platform/base/errors.ts";
import type { DropCode } from "../../../platform/base/warnings.ts";
import type { Route } from "../../http/port.ts";

export const endpoints = [
  "capture",
  "batch",
  "e",
  "i_v0_e",
  "track",
  "engage",
  "v1",
] as const satisfies readonly Route[];
/** The routes that accept no events. `other` stands for every unknown path. */
const elsewhere = [
  "flags",
  "config",
  "static",
  "recordings",
  "logs",
  "features",
  "page",
  "other",
] as const;
export const routes = [...endpoints, ...elsewhere] as const;
/** `head`: no byte of the body had arrived; `body`: some had; `answer`: all had. */
export const abortPhases = ["head", "body", "answer"] as const;
export const outcomeOfReason = {
  none: "stored",
  duplicate: "duplicate",
  performance_event: "removed",
  no_event: "dropped",
  no_distinct_id: "dropped",
  not_an_object: "dropped",
  invalid_properties: "error",
  event_name_too_long: "error",
  distinct_id_too_long: "error",
  too_deep: "error",
  number_too_long: "error",
  event_too_large: "error",
  unreadable_event: "error",
  rate_limited: "refused",
  timeout: "unknown",
} as const satisfies Record<
  | "none"
  | "duplicate"
  | "performance_event"
  | DropCode
  | "rate_limited"
  | "timeout"
  | ItemErrorCode,
  EventOutcome
>;

/**
 * `stored`: its frame was acknowledged, whatever the answer. `duplicate`: an earlier attempt of the
 * request counted it. `unknown`: no PubAck by the deadline. `removed`: of no use, in no count of
 * the answer. `refused`: its request may be retried, so one event can be counted often.
 */
type EventOutcome =
  | "stored"
  | "duplicate"
  | "removed"
  | "dropped"
  | "error"
  | "refused"
  | "unknown";
export type EventReason = keyof typeof outcomeOfReason;
export type MetricsRoute = (typeof routes)[number];
export type AbortPhase = (typeof abortPhases)[number];
