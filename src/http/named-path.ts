// A path at which there is nothing, or no such script, as answers and people who watch may see it:
// a stranger's text, so its beginning, in printable ASCII, without what may be a key.

import { withoutKeys } from "../base/without-keys.ts";
import { percentDecoded } from "./body/percent-decoded.ts";

/** Enough to see which it is. */
const charsShownMax = 80;
/** Of what is behind them, looked at: so a key is seen whole of which the beginning is shown. */
const charsReadMax = 320;
/** Where a key stands, whatever it looks like. */
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
 * A key goes as far as its segment does, in which it is percent-encoded as often as clients and
 * proxies like.
 */
function namedSegment(segment: string): string {
  // No key, and no word either.
  if (/^(.)\1*$/.test(segment)) return segment;
  const told = percentDecoded(percentDecoded(segment));
  const hidden = withoutKeys(told);
  if (hidden === told) return segment;
  let at = 0;
  while (told[at] === hidden[at]) at++;
  return `${told.slice(0, at)}<key>`;
}
