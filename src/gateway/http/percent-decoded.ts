/** The value of each byte as a hexadecimal digit; -1 for any other byte. */
export const hexValues = Int8Array.from({ length: 256 }, (_, byte) => {
  const digit = "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase());
  return byte < 0x80 ? digit : -1;
});

/**
 * Decodes short texts in which only ASCII matters. Invalid encoding stays. A byte beyond ASCII
 * becomes the character of the same number.
 */
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
