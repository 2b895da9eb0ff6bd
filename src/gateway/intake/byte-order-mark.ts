// The byte order mark (U+FEFF in UTF-8), which some clients put before their JSON. RFC 8259 (8.1)
// lets a parser ignore it.

import type { Buffer } from "node:buffer";

/** The body without the mark, in the same memory. */
export function withoutMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}
