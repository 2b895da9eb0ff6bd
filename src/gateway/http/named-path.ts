// Prepares a requested path for display, in answers and to operators. The path comes from an
// untrusted client: only its beginning is shown, in printable ASCII, without possible keys.

import { withoutKeys } from "../../platform/base/without-keys.ts";
import { percentDecoded } from "./percent-decoded.ts";

/** Maximum number of characters of a path that are shown: enough to recognize the path. */
const charsShownMax = 80;
/**
 * Maximum number of characters that are searched for keys: more than are shown, so that a key whose
 * beginning is shown is found.
 */
const charsReadMax = 320;
/** The segment after `/array/`, which is always a key. */
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
 * Hides a key in a segment, from the key's beginning to the segment's end. A key may be
 * percent-encoded twice, by a client and by a proxy.
 */
function namedSegment(segment: string): string {
  // A segment of one repeated character is not a key. Such a segment may be long, so it is not
  // searched.
  if (/^(.)\1*$/.test(segment)) return segment;
  const decoded = percentDecoded(percentDecoded(segment));
  const hidden = withoutKeys(decoded);
  if (hidden === decoded) return segment;
  let at = 0;
  while (decoded[at] === hidden[at]) at++;
  return `${decoded.slice(0, at)}<key>`;
}
