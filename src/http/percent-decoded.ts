// Decodes percent-encoding in short texts (paths, queries, names in a form), which are ASCII where
// they mean anything. Payloads are decoded elsewhere: see body/step-decoder.ts.

/**
 * Leaves what is no percent-encoding as it is. A byte past ASCII becomes the character of the same
 * number.
 */
export function percentDecoded(text: string): string {
  let decoded = "";
  let from = 0;
  for (let at = text.indexOf("%"); at >= 0; at = text.indexOf("%", at)) {
    const high = hexDigit(text.charCodeAt(at + 1));
    const low = hexDigit(text.charCodeAt(at + 2));
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

/** Returns -1 for what is no digit, such as the NaN past the end of a text. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
