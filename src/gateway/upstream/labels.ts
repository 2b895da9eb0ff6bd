// The values that the labels of passed requests can have in metrics.

import type { SdkRouteLabel } from "../http/sdk-requests.ts";

/** What is asked for. */
export const passedKinds = [
  "flags",
  "config",
  "static",
  "features",
  "recordings",
  "logs",
] as const satisfies readonly SdkRouteLabel[];
export type PassedKind = (typeof passedKinds)[number];

/** How a request for the upstream ended; penstock_passed_requests_total says what each means. */
export const passedOutcomes = ["passed", "fresh", "kept", "failed", "full", "gone"] as const;
export type PassedOutcome = (typeof passedOutcomes)[number];
