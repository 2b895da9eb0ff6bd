/** The codings of HTTP that can be decompressed. */
export type Coding = "gzip" | "deflate" | "br" | "zstd";
/** Compressions named in a query or form. `lz64` is lz-string's compressToBase64. */
export type Compression = "gzip" | "lz64" | "base64";
/** PostHog's clients also name compressions in Content-Encoding. */
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

export function compressionNamed(value: string): Compression | undefined {
  const name = value.trim().toLowerCase();
  return Object.hasOwn(compressions, name) ? compressions[name] : undefined;
}

/**
 * Returns the coding named in a Content-Encoding. Unknown names are ignored: clients send charsets
 * in this header. Several codings are undefined: they would multiply a decompression bomb.
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

export function namesUnknownCoding(header: string): boolean {
  return namesIn(header).some(
    (name) => name !== "" && name !== "identity" && !Object.hasOwn(codings, name),
  );
}

function namesIn(header: string): string[] {
  return header.split(",").map((part) => part.trim().toLowerCase());
}

/** RFC 1952. No JSON text begins with these bytes. */
export function looksGzipped(body: Uint8Array): boolean {
  return body.length >= 3 && body[0] === 0x1f && body[1] === 0x8b && body[2] === 0x08;
}

/** RFC 1950. `deflate` should have this header (RFC 9110), but some clients omit it. */
export function hasZlibHeader(body: Uint8Array): boolean {
  const method = body[0] ?? 0;
  const flags = body[1] ?? 0;
  return (method & 0x0f) === 8 && method >> 4 <= 7 && ((method << 8) | flags) % 31 === 0;
}
