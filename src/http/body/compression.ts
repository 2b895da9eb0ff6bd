// The names that clients have for how their payload is packed, beside the content codings of HTTP.
// Unpacks nothing.

/** `gzip`: also what is called gzip-js. `lz64`: lz-string's compressToBase64. */
export type Compression = "gzip" | "lz64" | "base64";

const names: Readonly<Record<string, Compression>> = {
  gzip: "gzip",
  "gzip-js": "gzip",
  lz64: "lz64",
  "lz-string": "lz64",
  base64: "base64",
  b64: "base64",
};

/**
 * What a query, or a field of a form, means; undefined for a name nobody knows, which says nothing.
 */
export function compressionNamed(value: string): Compression | undefined {
  const name = value.trim().toLowerCase();
  return Object.hasOwn(names, name) ? names[name] : undefined;
}
