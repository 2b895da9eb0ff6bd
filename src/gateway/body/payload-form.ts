// Detects the form of a body by its first bytes and the request's names: the payload itself, or a
// form, a base64 text or a compressed body around it. The bytes have precedence over headers and
// content types: JSON begins with a brace, gzip with its magic bytes. Decodes only a few bytes, and
// reads a bounded part of a form, apart from the search for the end of `data`.

import { Ascii, isJsonSpace } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { percentDecoded } from "../http/percent-decoded.ts";
import { invalidEncoding, unsupportedEncoding } from "./body-problems.ts";
import {
  type Compression,
  codingOf,
  compressionNamed,
  looksGzipped,
  namesUnknownCoding,
} from "./codings.ts";

/** The layers that have been removed from a body, as bits. A body has each layer at most once. */
export const Layer = {
  /**
   * Compression by gzip, deflate, br, zstd or lz64. Only one compression is removed: two nested
   * ones would multiply a decompression bomb.
   */
  Compressed: 1,
  Form: 2,
  Base64: 4,
} as const;

type PayloadForm = FormFields | "json" | "gzip" | "twice" | "lz64" | "base64" | "unknown";

/** Maximum bytes of white space that are skipped before the payload. */
const SPACE_BYTES_MAX = 1_024;
/** Number of bytes of a possible base64 text that are decoded to check its content. */
const SAMPLE_BYTES = 64;

/** Returns whether a body begins as JSON with events: a plain body is not checked further. */
export function beginsAsJson(first: number | undefined): boolean {
  return first === Ascii.OpenBrace || first === Ascii.OpenBracket;
}

/**
 * Returns the form of a body. `layers` are the layers already removed; `named` is the compression
 * that the request names, if any.
 */
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

/** Returns the offset of the payload, after a byte order mark and some white space. */
function payloadStart(bytes: Buffer): number {
  let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const end = Math.min(bytes.length, SPACE_BYTES_MAX);
  while (at < end && isJsonSpace(bytes[at])) at++;
  return at;
}

/**
 * Returns whether the beginning decodes to gzip, or to JSON, possibly after white space. The
 * alphabet alone is not enough, since `true` and `1234` consist of it. The rest of the body is
 * checked as it is decoded.
 */
function looksLikeBase64(bytes: Buffer, at: number): boolean {
  const text = bytes.toString("latin1", at, at + SAMPLE_BYTES);
  if (!/^[\w+/ -]{2}[\w+/ =-]{2}/.test(text)) return false;
  const start = Buffer.from(text.replaceAll(" ", "+"), "base64");
  return looksGzipped(start) || beginsAsJson(start[payloadStart(start)]);
}

export interface FormFields {
  /** Offset of the value of `data`, which is percent-encoded and ends at `dataEnd`. */
  readonly dataStart: number;
  readonly dataEnd: number;
  readonly compression: Compression | undefined;
  /** Whether the form has a second field `data`, so the intended one is unknown. */
  readonly hasDuplicateData: boolean;
}

/** Maximum bytes of all fields before `data`, and maximum bytes searched after `data`. */
const OTHERS_BYTES_MAX = 4_096;
const AMPERSAND = 0x26;
const DATA = "data=";

/** Returns the fields of a form with a field `data`; undefined for any other body. */
function fieldsOf(bytes: Buffer): FormFields | undefined {
  const name = bytes.toString("latin1", 0, DATA.length);
  // A form begins with only these characters, so most other bodies are excluded here.
  if (!/^[\w.$%&=-]+$/.test(name)) return undefined;
  const before = name === DATA ? "" : othersBefore(bytes);
  if (before === undefined) return undefined;
  const dataStart = before.length + DATA.length;
  const ampersand = bytes.indexOf(AMPERSAND, dataStart);
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

/**
 * Returns the fields before `data`, with the `&` after them; undefined if the text is not a list of
 * fields.
 */
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
  /** The layers that have been removed, as bits of `Layer`. */
  readonly layers: number;
}

/**
 * Returns the compression that the query or a form names. If they name no compression, returns the
 * one that Content-Encoding names if it is gzip, lz64 or base64.
 */
export function compressionOf(body: Packed): Compression | undefined {
  if (body.compression !== undefined || body.contentEncoding === "") return body.compression;
  const coding = codingOf(body.contentEncoding);
  return coding === "gzip" || coding === "lz64" || coding === "base64" ? coding : undefined;
}

/** Returns the problem if the request names a compression that its payload does not have. */
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
