// Detects the form of a body: JSON, or a form, base64 or compression around JSON. The first bytes
// have precedence over headers, because clients send wrong headers. Reads only a bounded part of
// the body, except when searching for the end of a form's field `data`.

import { Ascii, isJsonSpace, percentDecoded } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { invalidEncoding, unsupportedEncoding } from "./body-problems.ts";

/** The layers that were removed from a body, as bits. A body has each layer at most once. */
export const Layer = {
  /** Any compression. At most one is removed, because two would multiply the size of a bomb. */
  Compressed: 1,
  Form: 2,
  Base64: 4,
} as const;

type PayloadForm = FormFields | "json" | "gzip" | "twice" | "lz64" | "base64" | "unknown";

/** Maximum bytes of white space before the payload. */
const SPACE_BYTES_MAX = 1_024;
/** Number of bytes of a possible base64 text that are decoded to check it. */
const SAMPLE_BYTES = 64;

export function beginsAsJson(first: number | undefined): boolean {
  return first === Ascii.OpenBrace || first === Ascii.OpenBracket;
}

/** Returns the form of a body. `layers` are the layers that were already removed. */
export function formOf(bytes: Buffer, layers: number, named: Compression | undefined): PayloadForm {
  const at = payloadStart(bytes);
  if (beginsAsJson(bytes[at])) return "json";
  const isCompressed = (layers & Layer.Compressed) !== 0;
  if (looksGzipped(bytes)) return isCompressed ? "twice" : "gzip";
  const fields = (layers & Layer.Form) === 0 ? fieldsOf(bytes) : undefined;
  if (fields !== undefined) return fields;
  if (named === "lz64" && !isCompressed) return "lz64";
  if ((layers & Layer.Base64) === 0 && (named === "base64" || looksLikeBase64(bytes, at)))
    return "base64";
  return "unknown";
}

function payloadStart(bytes: Buffer): number {
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const end = Math.min(bytes.length, SPACE_BYTES_MAX);
  while (at < end && isJsonSpace(bytes[at])) at++;
  return at;
}

/** Returns whether the beginning decodes from base64 to gzip or JSON. Words like `true` do not. */
function looksLikeBase64(bytes: Buffer, at: number): boolean {
  const text = bytes.toString("latin1", at, at + SAMPLE_BYTES);
  if (!/^[\w+/ -]{2}[\w+/ =-]{2}/.test(text)) return false;
  const start = Buffer.from(text.replaceAll(" ", "+"), "base64");
  return looksGzipped(start) || beginsAsJson(start[payloadStart(start)]);
}

export interface FormFields {
  /** Offset of the percent-encoded value of `data`. */
  readonly dataStart: number;
  readonly dataEnd: number;
  readonly compression: Compression | undefined;
  /** Whether the form has a second `data`. If so, the intended field is unknown. */
  readonly hasDuplicateData: boolean;
}

/** Maximum bytes of the fields before `data`. Also the maximum bytes searched after `data`. */
const OTHERS_BYTES_MAX = 4_096;
const DATA = "data=";

/** Returns the fields of a form; undefined if the body is not a form with a field `data`. */
function fieldsOf(bytes: Buffer): FormFields | undefined {
  const name = bytes.toString("latin1", 0, DATA.length);
  // A form begins with only these characters, so this check rejects most other bodies.
  if (!/^[\w.$%&=-]+$/.test(name)) return undefined;
  const before = name === DATA ? "" : othersBefore(bytes);
  if (before === undefined) return undefined;
  const dataStart = before.length + DATA.length;
  const ampersand = bytes.indexOf(Ascii.Ampersand, dataStart);
  const dataEnd = ampersand < 0 ? bytes.length : ampersand;
  const after = bytes.toString(
    "latin1",
    dataEnd,
    Math.min(bytes.length, dataEnd + OTHERS_BYTES_MAX),
  );
  return {
    dataStart,
    dataEnd,
    compression: compressionIn(`&${before}`) ?? compressionIn(after),
    hasDuplicateData: after.includes(`&${DATA}`),
  };
}

/** Returns the text before `data`, including the last `&`; undefined if it is not all fields. */
function othersBefore(bytes: Buffer): string | undefined {
  const text = bytes.toString("latin1", 0, Math.min(bytes.length, OTHERS_BYTES_MAX));
  const at = text.indexOf(`&${DATA}`);
  if (at < 0) return undefined;
  const before = text.slice(0, at + 1);
  return /^(?:[^=&{}"\s]+(?:=[^&{}"\s]*)?&)+$/.test(before) ? before : undefined;
}

function compressionIn(fields: string): Compression | undefined {
  const [, value] = /&compression=([^&]{1,40})/.exec(fields) ?? [];
  return value === undefined ? undefined : compressionNamed(percentDecoded(value));
}

interface Packed {
  /** The compression that the query or the form names. */
  readonly compression: Compression | undefined;
  readonly contentEncoding: string;
  readonly layers: number;
}

/** Returns the compression that the query or form names. By default, uses Content-Encoding. */
export function compressionOf(body: Packed): Compression | undefined {
  if (body.compression !== undefined || body.contentEncoding === "") return body.compression;
  const coding = codingOf(body.contentEncoding);
  return coding === "gzip" || coding === "lz64" || coding === "base64" ? coding : undefined;
}

/** Returns a problem if the payload does not have the compression that the request names. */
export function compressionProblem(body: Packed, form: "json" | "unknown"): Problem | undefined {
  const { layers } = body;
  if (form === "unknown" && namesUnknownCoding(body.contentEncoding)) return unsupportedEncoding;
  const compression = (layers & Layer.Compressed) === 0 ? compressionOf(body) : undefined;
  if (compression === undefined || (compression === "base64" && (layers & Layer.Base64) !== 0))
    return undefined;
  return invalidEncoding(
    compression,
    form === "json" ? "it is uncompressed JSON" : "incorrect header check",
  );
}

/** The codings of HTTP that the gateway can decompress. */
export type Coding = "gzip" | "deflate" | "br" | "zstd";
/** Compressions named in a query or form. `lz64` is lz-string's compressToBase64. */
export type Compression = "gzip" | "lz64" | "base64";
/** The values of Content-Encoding. PostHog's clients also name their own compressions here. */
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
 * Returns the coding in a Content-Encoding header. Ignores unknown names, because clients send
 * charsets in this header. Returns undefined for several codings, because they would multiply the
 * size of a decompression bomb.
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

/** Returns whether the body begins as gzip (RFC 1952). No JSON text begins with these bytes. */
export function looksGzipped(body: Uint8Array): boolean {
  return body.length >= 3 && body[0] === 0x1f && body[1] === 0x8b && body[2] === 0x08;
}

/** Returns whether deflated data has the zlib header (RFC 1950). Some clients omit the header. */
export function hasZlibHeader(body: Uint8Array): boolean {
  const method = body[0] ?? 0;
  const flags = body[1] ?? 0;
  return (method & 0x0f) === 8 && method >> 4 <= 7 && ((method << 8) | flags) % 31 === 0;
}
