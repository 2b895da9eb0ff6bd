// The paths that take events, and what each is called in metrics. Bodies are treated alike on all
// of them, with one exception: see Exchange.isEngage.

import { Ascii } from "../base/ascii.ts";
import type { Route } from "../base/types.ts";
import type { SdkRouteLabel } from "./sdk-requests.ts";

/** The path as a bounded label: `other` is every path at which there is nothing. */
export type RouteLabel = Route | SdkRouteLabel | "other";

const labels = {
  "/capture": "capture",
  "/batch": "batch",
  "/e": "e",
  "/i/v0/e": "i_v0_e",
  "/track": "track",
  "/engage": "engage",
  "/i/v1/analytics/events": "v1",
  // Batches of what language models did: events like others, from SDKs that send them by a way of
  // their own.
  "/i/v0/ai/batch": "batch",
} as const satisfies Record<string, Route>;

/** Each path stands here with the slash at its end and without. */
export const endpoints: readonly (readonly [path: string, route: Route])[] = Object.entries(
  labels,
).flatMap(([path, route]) => [[path, route] as const, [`${path}/`, route] as const]);

/**
 * Makes any number of slashes at the beginning one: SDKs put a host that ends in a slash before a
 * path that begins with one.
 */
export function withOneSlash(path: string): string {
  let slashes = 0;
  while (path.charCodeAt(slashes) === Ascii.Slash) slashes++;
  return slashes > 1 ? path.slice(slashes - 1) : path;
}
