// The label values of forwarded requests in metrics.

import type { SdkRouteLabel } from "../http/sdk-requests.ts";

/** The kind of the requested resource. */
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
 * How a request for the upstream ended; the help of penstock_passed_requests_total explains each.
 */
export const passedOutcomes = ["passed", "fresh", "kept", "failed", "full", "gone"] as const;
export type PassedOutcome = (typeof passedOutcomes)[number];
