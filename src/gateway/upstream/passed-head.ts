// Selects the parts of a request that are forwarded. Only listed paths and headers are forwarded,
// and never cookies. Each accepted path has the same meaning for the gateway and for the upstream.

import type { IncomingHttpHeaders } from "node:http";
import { percentDecoded } from "../../platform/base/ascii.ts";
import type { SdkRouteLabel } from "../http/paths.ts";
import type { HttpRequest } from "../http/uws.ts";

export interface PassedHead {
  readonly kind: PassedKind;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ifNoneMatch: string;
}

const toUpstream = [
  "accept",
  "accept-language",
  "content-type",
  "content-encoding",
  "origin",
  "referer",
  "user-agent",
];
const ofSdks = /^(?:x-)?posthog-/;
const codings = ["br", "gzip", "deflate", "zstd"];
const fromUpstream = [
  "content-type",
  "content-encoding",
  "content-language",
  "cache-control",
  "age",
  "etag",
  "last-modified",
  "location",
  "retry-after",
  "vary",
  "cross-origin-resource-policy",
];
const valueCharsMax = 4_096;

interface HeadParts {
  readonly kind: PassedKind;
  readonly path: string;
  readonly query: string;
}

/** `request` is valid only while the handler of uWebSockets.js runs. */
export function passedHead(
  request: HttpRequest,
  clientAddress: string,
  { kind, path, query }: HeadParts,
): PassedHead {
  const headers: Record<string, string> = {};
  const put = (name: string, value: string): void => {
    if (value !== "" && isPlain(value)) headers[name] = value;
  };
  for (const name of toUpstream) put(name, request.getHeader(name));
  if (kind === "features") put("authorization", request.getHeader("authorization"));
  request.forEach((name, value) => {
    if (ofSdks.test(name)) put(name, value);
  });
  put("accept-encoding", codingsIn(request.getHeader("accept-encoding")));
  put("x-forwarded-for", clientAddress);
  return {
    kind,
    path,
    query,
    headers,
    ifNoneMatch: request.getHeader("if-none-match"),
    method: request.getMethod() === "post" ? "POST" : "GET",
  };
}

export function answerHeaders(headers: IncomingHttpHeaders): [name: string, value: string][] {
  return fromUpstream.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" && isPlain(value) ? [[shown(name), value]] : [];
  });
}

function codingsIn(acceptEncoding: string): string {
  const taken = acceptEncoding
    .toLowerCase()
    .split(",")
    .map((entry) => /^\s*([a-z]+)\s*(?:;\s*q=([\d.]+)\s*)?$/.exec(entry))
    .filter((match) => match !== null && !(Number(match[2] ?? "1") === 0))
    .map((match) => match?.[1]);
  return codings.filter((coding) => taken.includes(coding)).join(", ");
}

function isPlain(value: string): boolean {
  return value.length <= valueCharsMax && /^[\t -~\x80-\xff]*$/.test(value);
}

function shown(name: string): string {
  if (name === "etag") return "ETag";
  return name.replace(/(^|-)[a-z]/g, (part) => part.toUpperCase());
}

const rules: readonly (readonly [PassedKind, RegExp])[] = [
  ["features", /^\/flags\/definitions\/?$/],
  ["flags", /^\/(?:flags|decide)(?:\/|$)/],
  ["config", /^\/array\/[^/]+\/config(?:\.js)?\/?$/],
  ["config", /^\/config(?:\/|$)/],
  ["static", /^\/(?:array|static|site_app)\/./],
  [
    "features",
    /^\/(?:api\/(?:surveys|early_access_features|web_experiments|product_tours|conversations\/v1|feature_flag)|surveys|external_surveys)(?:\/|$)/,
  ],
  ["features", /^\/api\/projects\/[^/]+\/feature_flags\/[^/]+\/remote_config\/?$/],
  ["recordings", /^\/s\/?$/],
  [
    "logs",
    /^\/(?:i\/v1\/(?:logs|traces|metrics)|i\/v0\/ai\/otel\/v1\/(?:logs|metrics)|report)\/?$/,
  ],
];
const charsMax = 4_096;
const plainPath = /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[\da-fA-F]{2})*)+$/;

export function passedKindOf(path: string): PassedKind | undefined {
  const kind = rules.find(([, rule]) => rule.test(path))?.[0];
  return kind !== undefined && meansItself(path) ? kind : undefined;
}

export function plainlySpelt(path: string): string {
  return path.replace(/%[\da-fA-F]{2}/g, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoded.toUpperCase();
  });
}

export function passedQuery(query: string): string | undefined {
  const encoded = query.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent);
  return encoded.length <= charsMax ? encoded : undefined;
}

/**
 * Returns whether all parsers read the path in the same way. Only the last segment may be empty. No
 * segment may be `.` or `..`, or contain slashes, backslashes or control characters, even if they
 * are encoded twice.
 */
function meansItself(path: string): boolean {
  if (path.length > charsMax || !plainPath.test(path)) return false;
  const segments = path.slice(1).split("/");
  return segments.every((segment, at) => {
    if (segment === "") return at === segments.length - 1;
    const decoded = percentDecoded(percentDecoded(segment));
    return !/^\.{1,2}$/.test(decoded) && !/[/\\\p{Cc}]/u.test(decoded);
  });
}

export const passedKinds = [
  "flags",
  "config",
  "static",
  "features",
  "recordings",
  "logs",
] as const satisfies readonly SdkRouteLabel[];
export type PassedKind = (typeof passedKinds)[number];

export const passedOutcomes = ["passed", "fresh", "kept", "failed", "full", "gone"] as const;
export type PassedOutcome = (typeof passedOutcomes)[number];
