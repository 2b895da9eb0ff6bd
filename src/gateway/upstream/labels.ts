import type { SdkRouteLabel } from "../http/sdk-requests.ts";

export const passedKinds = [
  "flags",
  "config",
  "static",
  "features",
  "recordings",
  "logs",
] as const satisfies readonly SdkRouteLabel[];
export type PassedKind = (typeof passedKinds)[number];

/** The help of penstock_passed_requests_total explains them. */
export const passedOutcomes = ["passed", "fresh", "kept", "failed", "full", "gone"] as const;
export type PassedOutcome = (typeof passedOutcomes)[number];
