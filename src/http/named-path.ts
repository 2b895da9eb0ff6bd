// Makes a path presentable at which there is nothing, or no such script, for answers and for people
// who watch. It is a stranger's text: so only its beginning is shown, in printable ASCII, without
// what may be a key.

import { withoutKeys } from "../base/without-keys.ts";
import { percentDecoded } from "./body/percent-decoded.ts";

/** So many characters show which path it is. */
const charsShownMax = 80;
/** So many are searched for keys: one whose beginning is shown is seen whole. */
const charsReadMax = 320;
/** A key stands here, whatever it looks like. */
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
 * Hides the keys of a segment. A key goes as far as its segment does, and may be percent-encoded
 * twice, by a client and by a proxy.
 */
function namedSegment(segment: string): string {
  // A row of equal characters is no key, and may be long.
  if (/^(.)\1*$/.test(segment)) return segment;
  const told = percentDecoded(percentDecoded(segment));
  const hidden = withoutKeys(told);
  if (hidden === told) return segment;
  let at = 0;
  while (told[at] === hidden[at]) at++;
  return `${told.slice(0, at)}<key>`;
}
