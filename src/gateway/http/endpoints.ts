// The paths that take events, and the label of each in metrics. They treat bodies alike, with three
// exceptions: see Exchange.isEngage, Exchange.v1 and `conversions`.

import { Ascii } from "../../platform/base/ascii.ts";
import type { ConversionKind } from "./conversion/conversion.ts";
import type { Route } from "./port.ts";
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
  "/i/v1/ai/events": "v1",
  // Batches of events about language models. SDKs send them to a path of their own, but they are
  // events like others.
  "/i/v0/ai/batch": "batch",
  "/i/v0/ai": "batch",
  "/i/v0/ai/otel": "batch",
  "/i/v0/ai/otel/v1/traces": "batch",
} as const satisfies Record<string, Route>;

/** The paths whose bodies are in another form. Exporters append /v1/traces to the path they know. */
const conversions: ReadonlyMap<string, ConversionKind> = new Map([
  ["/i/v0/ai", "multipart"],
  ["/i/v0/ai/otel", "otlp"],
  ["/i/v0/ai/otel/v1/traces", "otlp"],
]);

export function conversionAt(path: string): ConversionKind | undefined {
  return conversions.get(path.endsWith("/") ? path.slice(0, -1) : path);
}

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
