// Which coding a body is in: by its Content-Encoding, or by gzip's magic bytes where there is none.
// Decodes nothing.

import type { Compression } from "./compression.ts";

export type Coding = "gzip" | "deflate" | "br" | "zstd";
/** Beside those of HTTP, what PostHog's clients call so. */
export type BodyCoding = Coding | Compression | "identity";

const codings: Readonly<Record<string, BodyCoding>> = {
  gzip: "gzip",
  "x-gzip": "gzip",
  "gzip-js": "gzip",
  deflate: "deflate",
  br: "br",
  zstd: "zstd",
  lz64: "lz64",
  "lz-string": "lz64",
  base64: "base64",
  b64: "base64",
};

/**
 * The coding a Content-Encoding names; `identity` for none, undefined for one that is not
 * supported. One coding only: of a list, all but one must be `identity`; nobody sends stacked
 * codings but to multiply a bomb.
 */
export function codingOf(header: string): BodyCoding | undefined {
  if (header === "") return "identity";
  if (header === "gzip") return "gzip";
  let found: BodyCoding = "identity";
  for (const part of header.split(",")) {
    const name = part.trim().toLowerCase();
    if (name === "" || name === "identity") continue;
    const coding = Object.hasOwn(codings, name) ? codings[name] : undefined;
    if (coding === undefined || found !== "identity") return undefined;
    found = coding;
  }
  return found;
}

/** Magic bytes and the one method there is: no JSON text begins so. RFC 1952. */
export function looksGzipped(body: Uint8Array): boolean {
  return body.length >= 3 && body[0] === 0x1f && body[1] === 0x8b && body[2] === 0x08;
}

/**
 * `deflate` is zlib-wrapped by RFC 9110, but some send it bare: true when the two bytes are a zlib
 * header. RFC 1950.
 */
export function hasZlibHeader(body: Uint8Array): boolean {
  const method = body[0] ?? 0;
  const flags = body[1] ?? 0;
  return (method & 0x0f) === 8 && method >> 4 <= 7 && ((method << 8) | flags) % 31 === 0;
}
