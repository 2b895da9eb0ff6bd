import { Buffer, isUtf8 } from "node:buffer";

/** A pair of encoded surrogates (CESU-8), in Latin-1. */
const surrogatePairs = /\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]/g;

/** Decodes UTF-8. A pair of encoded surrogates becomes the character it represents. */
export function textIn(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  const joined = bytes.toString("latin1").replace(surrogatePairs, (pair) => {
    const unit = (at: number) =>
      0xd000 | ((pair.charCodeAt(at + 1) & 0x3f) << 6) | (pair.charCodeAt(at + 2) & 0x3f);
    return Buffer.from(String.fromCharCode(unit(0), unit(3))).toString("latin1");
  });
  return Buffer.from(joined, "latin1").toString();
}

/**
 * Parses the text or, if that fails, the text with `null` instead of NaN and Infinity, which the
 * intake repairs, too.
 */
export function parsedRepaired(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch (error) {
    const repaired = withoutNonFinite(text);
    if (repaired === text) throw error;
    return parse(repaired);
  }
}

function withoutNonFinite(text: string): string {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : quote;
    pieces.push(text.slice(at, end).replaceAll(/NaN|-?Infinity/g, "null"));
    at = quote < 0 ? end : stringEnd(text, quote);
    pieces.push(text.slice(end, at));
  }
  return pieces.join("");
}

/** Returns the offset after the closing quote of the string that begins at `start`. */
function stringEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}
