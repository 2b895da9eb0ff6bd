// Compares how a payload is said to be packed with what it shows to be. Unpacks nothing.

import type { Problem } from "../../base/errors.ts";
import { invalidEncoding } from "./body-problems.ts";
import { type Compression, codingOf } from "./codings.ts";
import { Layer } from "./payload-form.ts";

export interface Packed {
  /** The compression that the query or the form names. */
  readonly compression: Compression | undefined;
  readonly contentEncoding: string;
  /** The layers that have been taken off. */
  readonly layers: number;
}

/**
 * Says how the payload is packed, as far as anybody told: the query, a form, or a header that names
 * what is no content coding.
 */
export function compressionOf(body: Packed): Compression | undefined {
  if (body.compression !== undefined || body.contentEncoding === "") return body.compression;
  const coding = codingOf(body.contentEncoding);
  return coding === "gzip" || coding === "lz64" || coding === "base64" ? coding : undefined;
}

/** Says what was told of the payload and is not so. */
export function faultOf(body: Packed, form: "json" | "unknown"): Problem | undefined {
  const { layers } = body;
  const compression = (layers & Layer.Compressed) === 0 ? compressionOf(body) : undefined;
  if (compression === undefined || (compression === "base64" && (layers & Layer.Base64) !== 0))
    return undefined;
  return invalidEncoding(
    compression,
    form === "json" ? "it is JSON as it came" : "incorrect header check",
  );
}
