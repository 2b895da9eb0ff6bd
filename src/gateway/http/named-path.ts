import { withoutKeys } from "../../platform/base/without-keys.ts";
import { percentDecoded } from "./percent-decoded.ts";

const charsShownMax = 80;
/** More than are shown, so that a key whose beginning is shown is found. */
const charsReadMax = 320;
/** The segment after `/array/` is always a key. */
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
 * Hides a key, from its beginning to the segment's end. A client and a proxy may both encode it.
 */
function namedSegment(segment: string): string {
  // Such a segment may be long and is not a key.
  if (/^(.)\1*$/.test(segment)) return segment;
  const decoded = percentDecoded(percentDecoded(segment));
  const hidden = withoutKeys(decoded);
  if (hidden === decoded) return segment;
  let at = 0;
  while (decoded[at] === hidden[at]) at++;
  return `${decoded.slice(0, at)}<key>`;
}
