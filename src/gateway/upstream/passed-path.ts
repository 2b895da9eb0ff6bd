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
/** The characters of a path (RFC 3986, section 3.3). */
const plainPath = /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%[\da-fA-F]{2})*)+$/;

/** Returns undefined for a path that is not forwarded. `path` has no query. */
export function passedKindOf(path: string): PassedKind | undefined {
  const kind = rules.find(([, rule]) => rule.test(path))?.[0];
  return kind !== undefined && meansItself(path) ? kind : undefined;
}

/** Returns the path without needless percent-encoding (RFC 3986, 6.2.2.2). */
export function plainlySpelt(path: string): string {
  return path.replace(/%[\da-fA-F]{2}/g, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoded.toUpperCase();
  });
}

/** Returns the query in valid characters; undefined if it is too long. */
export function passedQuery(query: string): string | undefined {
  const encoded = query.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent);
  return encoded.length <= charsMax ? encoded : undefined;
}

/**
 * Returns whether all parsers read the path alike: without empty segments except the last, and
 * without `.`, `..`, slashes, backslashes or control characters, even encoded twice.
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
