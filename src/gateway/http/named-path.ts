// Makes a path that was asked for fit to be shown, in answers and to people who watch. The path is
// a stranger's text: so only its beginning is shown, in printable ASCII, without what may be a key.

import { withoutKeys } from "../../platform/base/without-keys.ts";
import { percentDecoded } from "./percent-decoded.ts";

/** At most this many characters of a path are shown: enough to tell which path it is. */
const charsShownMax = 80;
/**
 * This many characters are searched for keys, so that a key whose beginning is shown is seen whole.
 */
const charsReadMax = 320;
/** The segment behind `/array/` is a key, whatever it looks like. */
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
  // A segment of one repeated character is no key. It may be long, so it is not searched.
  if (/^(.)\1*$/.test(segment)) return segment;
  const told = percentDecoded(percentDecoded(segment));
  const hidden = withoutKeys(told);
  if (hidden === told) return segment;
  let at = 0;
  while (told[at] === hidden[at]) at++;
  return `${told.slice(0, at)}<key>`;
}
