// The paths that accept events, and the metrics label of each. All paths process bodies alike, with
// three exceptions: Exchange.isEngage, Exchange.v1 and `conversions`.

import { Ascii } from "../../platform/base/ascii.ts";
import type { ConversionKind } from "./conversion/conversion.ts";
import type { Route } from "./port.ts";
import type { SdkRouteLabel } from "./sdk-requests.ts";

/** The label of a path in metrics. `other` is every unknown path. */
export type RouteLabel = Route | SdkRouteLabel | "other";

const labels = {
  "/capture": "capture",
  "/batch": "batch",
  "/e": "e",
  "/i/v0/e": "i_v0_e",
  "/track": "track",
  "/engage": "engage",
  "/i/v1/analytics/events": "v1",
  "/i/v1/ai/events": "v1",
  // SDKs send events about language models to separate paths.
  "/i/v0/ai/batch": "batch",
  "/i/v0/ai": "batch",
  "/i/v0/ai/otel": "batch",
  "/i/v0/ai/otel/v1/traces": "batch",
} as const satisfies Record<string, Route>;

/**
 * Paths whose bodies are converted to events. Exporters append /v1/traces to the configured path.
 */
const conversions: ReadonlyMap<string, ConversionKind> = new Map([
  ["/i/v0/ai", "multipart"],
  ["/i/v0/ai/otel", "otlp"],
  ["/i/v0/ai/otel/v1/traces", "otlp"],
]);

export function conversionAt(path: string): ConversionKind | undefined {
  return conversions.get(path.endsWith("/") ? path.slice(0, -1) : path);
}

/** Every path, without and with a final slash. */
export const endpoints: readonly (readonly [path: string, route: Route])[] = Object.entries(
  labels,
).flatMap(([path, route]) => [[path, route] as const, [`${path}/`, route] as const]);

/** Reduces leading slashes to one: SDKs join a host that ends in a slash and a path. */
export function withOneSlash(path: string): string {
  let slashes = 0;
  while (path.charCodeAt(slashes) === Ascii.Slash) slashes++;
  return slashes > 1 ? path.slice(slashes - 1) : path;
}
