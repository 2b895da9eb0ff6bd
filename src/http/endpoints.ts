// The paths that take events, and the label of each in metrics. Bodies are treated alike on all of
// them but two: see Exchange.isEngage and Exchange.v1.

import { Ascii } from "../base/ascii.ts";
import type { Route } from "../base/types.ts";
import type { SdkRouteLabel } from "./sdk-requests.ts";

/** The path as a bounded label: `other` stands for every path at which there is nothing. */
export type RouteLabel = Route | SdkRouteLabel | "other";

const labels = {
  "/capture": "capture",
  "/batch": "batch",
  "/e": "e",
  "/i/v0/e": "i_v0_e",
  "/track": "track",
  "/engage": "engage",
  "/i/v1/analytics/events": "v1",
  // Batches of events about language models. SDKs send them to a path of their own, but they are
  // events like others.
  "/i/v0/ai/batch": "batch",
} as const satisfies Record<string, Route>;

/** Every path of `labels`, once without a slash at its end and once with one. */
export const endpoints: readonly (readonly [path: string, route: Route])[] = Object.entries(
  labels,
).flatMap(([path, route]) => [[path, route] as const, [`${path}/`, route] as const]);

/**
 * Cuts several slashes at the beginning of a path down to one: SDKs put a host that ends in a slash
 * before a path that begins with one.
 */
export function withOneSlash(path: string): string {
  let slashes = 0;
  while (path.charCodeAt(slashes) === Ascii.Slash) slashes++;
  return slashes > 1 ? path.slice(slashes - 1) : path;
}
