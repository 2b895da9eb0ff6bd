// Decodes percent-encoding in short texts (paths, queries, names in a form), which are ASCII where
// they mean anything. Payloads are decoded elsewhere: see body/step-decoder.ts.

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
