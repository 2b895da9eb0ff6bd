// Detects whether a body is JSON, or JSON inside of a form, base64 or a compression. The first
// bytes have precedence over the headers, because clients send wrong headers.

import { Ascii, isJsonSpace, percentDecoded } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { invalidEncoding, unsupportedEncoding } from "./body-problems.ts";

/** The layers that were removed from a body, as bits. Each layer is removed at most once. */
export const Layer = {
  /** At most one compression is removed. With two, a small body could become extremely large. */
  Compressed: 1,
  Form: 2,
  Base64: 4,
} as const;

type PayloadForm = FormFields | "json" | "gzip" | "twice" | "lz64" | "base64" | "unknown";

const SPACE_BYTES_MAX = 1_024;
const SAMPLE_BYTES = 64;

export function beginsAsJson(first: number | undefined): boolean {
  return first === Ascii.OpenBrace || first === Ascii.OpenBracket;
}

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

function looksLikeBase64(bytes: Buffer, at: number): boolean {
  const text = bytes.toString("latin1", at, at + SAMPLE_BYTES);
  if (!/^[\w+/ -]{2}[\w+/ =-]{2}/.test(text)) return false;
  const start = Buffer.from(text.replaceAll(" ", "+"), "base64");
  return looksGzipped(start) || beginsAsJson(start[payloadStart(start)]);
}

export interface FormFields {
  readonly dataStart: number;
  readonly dataEnd: number;
  readonly compression: Compression | undefined;
  /**
   * This flag is true if the form has two `data` fields, because only the client knows which
   * counts.
   */
  readonly hasDuplicateData: boolean;
}

const OTHERS_BYTES_MAX = 4_096;
const DATA = "data=";

function fieldsOf(bytes: Buffer): FormFields | undefined {
  const name = bytes.toString("latin1", 0, DATA.length);
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
  readonly compression: Compression | undefined;
  readonly contentEncoding: string;
  readonly layers: number;
}

export function compressionOf(body: Packed): Compression | undefined {
  if (body.compression !== undefined || body.contentEncoding === "") return body.compression;
  const coding = codingOf(body.contentEncoding);
  return coding === "gzip" || coding === "lz64" || coding === "base64" ? coding : undefined;
}

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

export type Coding = "gzip" | "deflate" | "br" | "zstd";
/** `lz64` is lz-string's compressToBase64. */
export type Compression = "gzip" | "lz64" | "base64";
/**
 * The values of Content-Encoding. PostHog's clients also send the names of their own compressions
 * in this header.
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

export function compressionNamed(value: string): Compression | undefined {
  const name = value.trim().toLowerCase();
  return Object.hasOwn(compressions, name) ? compressions[name] : undefined;
}

/**
 * Returns undefined for unknown names, because some clients send charsets in this header. Also
 * returns undefined for several codings, because with two compressions a small body could become
 * extremely large.
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

/** These bytes begin a gzip member (RFC 1952). No JSON text begins with them. */
export function looksGzipped(body: Uint8Array): boolean {
  return body.length >= 3 && body[0] === 0x1f && body[1] === 0x8b && body[2] === 0x08;
}

/** Some clients omit the zlib header (RFC 1950). */
export function hasZlibHeader(body: Uint8Array): boolean {
  const method = body[0] ?? 0;
  const flags = body[1] ?? 0;
  return (method & 0x0f) === 8 && method >> 4 <= 7 && ((method << 8) | flags) % 31 === 0;
}
