export const Ascii = {
  Tab: 0x09,
  LineFeed: 0x0a,
  CarriageReturn: 0x0d,
  Space: 0x20,
  Quote: 0x22,
  Ampersand: 0x26,
  Plus: 0x2b,
  Comma: 0x2c,
  Minus: 0x2d,
  Dot: 0x2e,
  Slash: 0x2f,
  Colon: 0x3a,
  Equals: 0x3d,
  OpenBracket: 0x5b,
  Backslash: 0x5c,
  CloseBracket: 0x5d,
  OpenBrace: 0x7b,
  CloseBrace: 0x7d,
} as const;

export function isJsonSpace(byte: number | undefined): boolean {
  return (
    byte === Ascii.Space ||
    byte === Ascii.LineFeed ||
    byte === Ascii.CarriageReturn ||
    byte === Ascii.Tab
  );
}

/**
 * Returns the offset of the closing quote of a JSON string, or otherwise `end`. `start` must
 * be inside of the string.
 */
export function stringEnd(json: Uint8Array, start: number, end = json.length): number {
  let at = start;
  while (at < end && json[at] !== Ascii.Quote) at += json[at] === Ascii.Backslash ? 2 : 1;
  return Math.min(at, end);
}

export const hexValues = Int8Array.from({ length: 256 }, (_, byte) =>
  "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase()),
);

/** Decodes percent-encoded ASCII. Invalid encodings stay unchanged. */
export function percentDecoded(text: string): string {
  let decoded = "";
  let from = 0;
  for (let at = text.indexOf("%"); at >= 0; at = text.indexOf("%", at)) {
    const high = hexValues[text.charCodeAt(at + 1)] ?? -1;
    const low = hexValues[text.charCodeAt(at + 2)] ?? -1;
    if (high < 0 || low < 0) {
      at++;
      continue;
    }
    decoded += text.slice(from, at) + String.fromCharCode(high * 16 + low);
    at += 3;
    from = at;
  }
  return from === 0 ? text : decoded + text.slice(from);
}
