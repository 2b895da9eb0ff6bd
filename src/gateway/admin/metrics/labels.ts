// The values that the labels of the metrics can have. All are bounded: never a project, a key or a
// path that a client chose.

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
/** The routes that do not take events. `other` is every path at which there is nothing. */
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
/**
 * How far a request was when its client went away. `head`: no byte of the body had come. `answer`:
 * the body was whole, the answer still due.
 */
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
 * What became of an event.
 * - `stored`: its frame was acknowledged, whatever its request was answered.
 * - `duplicate`: the stream had its frame from an earlier sending of the request, which counted it.
 * - `unknown`: its frame was not acknowledged by the deadline.
 * - `removed`: it is of no use, and no count in the answer includes it.
 * - `refused`: its request was refused and may well come again, so one event can be counted often.
 */
type EventOutcome =
  | "stored"
  | "duplicate"
  | "removed"
  | "dropped"
  | "error"
  | "refused"
  | "unknown";
/** The reason `none` goes with the outcome `stored`, the item errors go with `error`. */
export type EventReason = keyof typeof outcomeOfReason;
export type MetricsRoute = (typeof routes)[number];
export type AbortPhase = (typeof abortPhases)[number];
