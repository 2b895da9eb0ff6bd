// What was said of how a payload is packed, held against what showed itself, and what is wrong with
// it then. Unpacks nothing.

import type { Problem } from "../../base/errors.ts";
import { invalidEncoding } from "./body-problems.ts";
import { type Compression, codingOf } from "./codings.ts";
import { Layer } from "./payload-form.ts";

export interface Packed {
  /** As the query or the form names it. */
  readonly compression: Compression | undefined;
  readonly contentEncoding: string;
  /** What has been taken off. */
  readonly layers: number;
}

/**
 * How the payload is packed, as far as anybody says: the query, a form, or a header that names what
 * is no content coding.
 */
export function compressionOf(body: Packed): Compression | undefined {
  if (body.compression !== undefined || body.contentEncoding === "") return body.compression;
  const coding = codingOf(body.contentEncoding);
  return coding === "gzip" || coding === "lz64" || coding === "base64" ? coding : undefined;
}

/** What was said of the payload, and is not so. */
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
