// Decodes percent-encoding in short texts of a request's head, which are ASCII where they mean
// anything. Payloads are decoded elsewhere: see step-decoder.ts.

/**
 * Leaves what is no percent-encoding as it is. A byte past ASCII becomes the character of the same
 * number.
 */
export function percentDecoded(text: string): string {
  if (!text.includes("%")) return text;
  return text.replaceAll(/%([\da-f]{2})/gi, (_whole, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
