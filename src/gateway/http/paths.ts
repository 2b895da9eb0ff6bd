// The paths of the public port. For each path, this file determines the label in metrics and the
// form for display. For unknown paths, it suggests a similar known path.

import { Ascii, percentDecoded } from "../../platform/base/ascii.ts";
import { lettersApart, nearest, typosMax } from "../../platform/base/near-name.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import { withoutKeys } from "../../platform/base/without-keys.ts";
import type { Route } from "./port.ts";

export type SdkRouteLabel = (typeof sdkLabels)[number];

export const sdkLabels = [
  "flags",
  "config",
  "static",
  "recordings",
  "logs",
  "features",
  "page",
] as const;

export function isSdkRoute(label: string): label is SdkRouteLabel {
  return (sdkLabels as readonly string[]).includes(label);
}

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
  "/i/v0/ai/batch": "batch",
  "/i/v0/ai": "batch",
  "/i/v0/ai/otel": "batch",
  "/i/v0/ai/otel/v1/traces": "batch",
} as const satisfies Record<string, Route>;

export const eventRoutes: readonly Route[] = [...new Set(Object.values(labels))];

export type ConversionKind = "otlp" | "multipart";

const conversions: ReadonlyMap<string, ConversionKind> = new Map([
  ["/i/v0/ai", "multipart"],
  ["/i/v0/ai/otel", "otlp"],
  ["/i/v0/ai/otel/v1/traces", "otlp"],
]);

export function conversionAt(path: string): ConversionKind | undefined {
  return conversions.get(path.endsWith("/") ? path.slice(0, -1) : path);
}

export const endpoints: readonly (readonly [path: string, route: Route])[] = Object.entries(
  labels,
).flatMap(([path, route]) => [[path, route] as const, [`${path}/`, route] as const]);

/**
 * Removes repeated slashes at the start. Some SDKs send them, because they join a path to a host
 * that ends in a slash.
 */
export function withOneSlash(path: string): string {
  let slashes = 0;
  while (path.charCodeAt(slashes) === Ascii.Slash) slashes++;
  return slashes > 1 ? path.slice(slashes - 1) : path;
}

const charsShownMax = 80;
const charsReadMax = 320;
const ofKey = /^\/array\/[^/]*(?=\/)/;

export function namedPath(path: string): string {
  const segments = path.slice(0, charsReadMax).replace(ofKey, "/array/<key>").split("/");
  const named = segments
    .map(namedSegment)
    .join("/")
    .replace(/[^!-~]/g, "?");
  return named.length > charsShownMax || path.length > charsReadMax
    ? `${named.slice(0, charsShownMax)}…`
    : named;
}

/**
 * Replaces a key by `<key>`. The segment is decoded twice, because the client and a proxy may both
 * have encoded it.
 */
function namedSegment(segment: string): string {
  if (/^(.)\1*$/.test(segment)) return segment;
  const decoded = percentDecoded(percentDecoded(segment));
  const hidden = withoutKeys(decoded);
  if (hidden === decoded) return segment;
  let at = 0;
  while (decoded[at] === hidden[at]) at++;
  return `${decoded.slice(0, at)}<key>`;
}

const charsComparedMax = 80;
const oneTypoFrom = 4;

/** A search takes at most 0.1 ms. */
const searchesPerTurn = 8;

export class NearPaths {
  readonly #searches = new TurnBudget(searchesPerTurn);

  find(path: string, paths: readonly string[]): string | undefined {
    if (this.#searches.isSpent) return undefined;
    this.#searches.spend(1);
    return nearPath(path, paths);
  }
}

export function nearPath(path: string, paths: readonly string[]): string | undefined {
  if (path.length > charsComparedMax) return undefined;
  const sent = plain(path);
  if (sent === "") return undefined;
  const known = paths.filter((one) => one.endsWith("/") || !paths.includes(`${one}/`));
  const most = sent.length < oneTypoFrom ? 0 : typosMax(sent);
  const near = nearest(known, (one) => lettersApart(sent, plain(one), most), most);
  if (near !== undefined) return near;
  return known
    .filter(
      (one) =>
        plain(one) !== "" && (sent.endsWith(plain(one)) || sent.startsWith(`${plain(one)}/`)),
    )
    .sort((one, other) => other.length - one.length)[0];
}

function plain(path: string): string {
  return path.toLowerCase().replaceAll(/\/+/g, "/").replace(/\/$/, "");
}
