// Guesses from its first bytes what a body is that is not JSON, so that the answer can say what to
// send instead.

import type { Buffer } from "node:buffer";

const bytesRead = 128;

const byFirstBytes: readonly (readonly [string, string])[] = [
  ["fffe", "it looks like UTF-16: send UTF-8"],
  ["feff", "it looks like UTF-16: send UTF-8"],
  ["1f8b", "it looks like gzip within another encoding: compress it once"],
  ["28b52ffd", "it looks like zstd: say so in Content-Encoding"],
  ["789c", "it looks like deflate: say so in Content-Encoding"],
  ["7801", "it looks like deflate: say so in Content-Encoding"],
  ["785e", "it looks like deflate: say so in Content-Encoding"],
  ["78da", "it looks like deflate: say so in Content-Encoding"],
];

/**
 * What a body that does not parse looks like, and what to send instead; undefined where it looks
 * like JSON with a mistake in it.
 */
export function kindOfBody(body: Buffer): string | undefined {
  const first = body.toString("hex", 0, 4);
  const known = byFirstBytes.find(([bytes]) => first.startsWith(bytes));
  if (known !== undefined) return known[1];
  if (body.length > 1 && (body[0] === 0 || body[1] === 0))
    return "it looks like UTF-16: send UTF-8";
  const text = body.toString("latin1", 0, bytesRead).trimStart();
  if (text.startsWith("--"))
    return "it looks like multipart/form-data: send the JSON as the body itself";
  if (text.startsWith("<")) return "it looks like XML or HTML: send JSON";
  if (/^(?:eyJ|W3s|ewog)[\w+/=-]*$/.test(text))
    return "it looks like base64 that is cut or damaged";
  // An unquoted name before an equals sign: no JSON text begins like this.
  if (/^[\w.$%[\]+-]{1,64}=/.test(text)) {
    return "it looks like a form: send JSON, or a form whose field data holds the JSON";
  }
  return undefined;
}
