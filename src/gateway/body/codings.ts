// The codings of bodies, by the names that clients use in Content-Encoding, in a query, or in a
// field of a form. Also recognizes gzip by its magic bytes. Decodes nothing.

/** The codings of HTTP that the decompressors support. */
export type Coding = "gzip" | "deflate" | "br" | "zstd";
/**
 * The compressions of a payload that clients name outside Content-Encoding, in a query or in a
 * form. `lz64` is lz-string's compressToBase64.
 */
export type Compression = "gzip" | "lz64" | "base64";
/**
 * The supported values of Content-Encoding: PostHog's clients send compressions in this header,
 * too.
 */
export type BodyCoding = Coding | Compression | "identity";

const compressions: Readonly<Record<string, Compression>> = {
  gzip: "gzip",
  "gzip-js": "gzip",
  lz64: "lz64",
  "lz-string": "lz64",
  base64: "base64",
  b64: "base64",
};

const codings: Readonly<Record<string, BodyCoding>> = {
  ...compressions,
  "x-gzip": "gzip",
  deflate: "deflate",
  br: "br",
  zstd: "zstd",
};

/**
 * Returns the compression named in a query or in a field of a form. Returns undefined for an
 * unknown name, which is ignored.
 */
export function compressionNamed(value: string): Compression | undefined {
  const name = value.trim().toLowerCase();
  return Object.hasOwn(compressions, name) ? compressions[name] : undefined;
}

/**
 * Returns the known coding named in a Content-Encoding, or `identity` for no coding. Unknown names
 * are ignored: clients send charsets and content types in this header, and the bytes show whether
 * the body can be read. Returns undefined if the header names several codings: they are refused,
 * because they multiply a decompression bomb.
 */
export function codingOf(header: string): BodyCoding | undefined {
  if (header === "") return "identity";
  if (header === "gzip") return "gzip";
  let found: BodyCoding = "identity";
  for (const name of namesIn(header)) {
    const coding = Object.hasOwn(codings, name) ? codings[name]! : "identity";
    if (coding === "identity") continue;
    if (found !== "identity") return undefined;
    found = coding;
  }
  return found;
}

/** Returns whether a Content-Encoding names an unknown coding. */
export function namesUnknownCoding(header: string): boolean {
  return namesIn(header).some(
    (name) => name !== "" && name !== "identity" && !Object.hasOwn(codings, name),
  );
}

function namesIn(header: string): string[] {
  return header.split(",").map((part) => part.trim().toLowerCase());
}

/**
 * Returns whether the body begins with gzip's magic bytes and only compression method. No JSON text
 * begins with these bytes. RFC 1952.
 */
export function looksGzipped(body: Uint8Array): boolean {
  return body.length >= 3 && body[0] === 0x1f && body[1] === 0x8b && body[2] === 0x08;
}

/**
 * Returns whether the first two bytes are a zlib header (RFC 1950). By RFC 9110 `deflate` has this
 * header, but some clients omit it.
 */
export function hasZlibHeader(body: Uint8Array): boolean {
  const method = body[0] ?? 0;
  const flags = body[1] ?? 0;
  return (method & 0x0f) === 8 && method >> 4 <= 7 && ((method << 8) | flags) % 31 === 0;
}
