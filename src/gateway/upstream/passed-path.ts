// Says which paths are passed on to the upstream: those at which SDKs ask for what is no event. It
// is a closed list, and a path that could mean another place upstream is not on it, however it is
// spelt.

import { percentDecoded } from "../http/percent-decoded.ts";
import type { PassedKind } from "./labels.ts";

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
/** Characters of a path (RFC 3986, section 3.3), and percent-encoded ones. */
const plainPath = /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[\da-fA-F]{2})*)+$/;

/** Undefined for a path that is not passed on. `path` has no query. */
export function passedKindOf(path: string): PassedKind | undefined {
  const kind = rules.find(([, rule]) => rule.test(path))?.[0];
  return kind !== undefined && meansItself(path) ? kind : undefined;
}

/** The path as everybody spells it: what need not be percent-encoded is not (RFC 3986, 6.2.2.2). */
export function plainlySpelt(path: string): string {
  return path.replace(/%[\da-fA-F]{2}/g, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoded.toUpperCase();
  });
}

/** The query as it goes on, in characters that a query may have; undefined: it is too long. */
export function passedQuery(query: string): string | undefined {
  const encoded = query.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent);
  return encoded.length <= charsMax ? encoded : undefined;
}

/**
 * Whether everybody takes the path for the same place: no segment that is empty but the last one,
 * none that goes up, and no slash or control character within one, once or twice encoded.
 */
function meansItself(path: string): boolean {
  if (path.length > charsMax || !plainPath.test(path)) return false;
  const segments = path.slice(1).split("/");
  return segments.every((segment, at) => {
    if (segment === "") return at === segments.length - 1;
    const told = percentDecoded(percentDecoded(segment));
    return !/^\.{1,2}$/.test(told) && !/[/\\\p{Cc}]/u.test(told);
  });
}
