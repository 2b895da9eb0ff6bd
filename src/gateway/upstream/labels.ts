// The label values of forwarded requests in metrics.

import type { SdkRouteLabel } from "../http/sdk-requests.ts";

/** The kinds of requested resources. */
export const passedKinds = [
  "flags",
  "config",
  "static",
  "features",
  "recordings",
  "logs",
] as const satisfies readonly SdkRouteLabel[];
export type PassedKind = (typeof passedKinds)[number];

/**
 * The outcomes of requests for the upstream. The help of penstock_passed_requests_total explains
 * each outcome.
 */
export const passedOutcomes = ["passed", "fresh", "kept", "failed", "full", "gone"] as const;
export type PassedOutcome = (typeof passedOutcomes)[number];
