// Compares how the client says that a payload is packed with what its bytes show. Unpacks nothing.

import type { Problem } from "../../platform/base/errors.ts";
import { invalidEncoding, unsupportedEncoding } from "./body-problems.ts";
import { type Compression, codingOf, namesUnknownCoding } from "./codings.ts";
import { Layer } from "./payload-form.ts";

interface Packed {
  /** The compression that the query or the form names. */
  readonly compression: Compression | undefined;
  readonly contentEncoding: string;
  /** The layers that have been taken off, as bits: see payload-form.ts. */
  readonly layers: number;
}

/**
 * Returns the compression that the query or a form names or, where they name none, the
 * Content-Encoding. In that, only gzip, lz64 and base64 count here.
 */
export function compressionOf(body: Packed): Compression | undefined {
  if (body.compression !== undefined || body.contentEncoding === "") return body.compression;
  const coding = codingOf(body.contentEncoding);
  return coding === "gzip" || coding === "lz64" || coding === "base64" ? coding : undefined;
}

/** Says what is wrong where the request names a compression that its payload does not have. */
export function faultOf(body: Packed, form: "json" | "unknown"): Problem | undefined {
  const { layers } = body;
  if (form === "unknown" && namesUnknownCoding(body.contentEncoding)) return unsupportedEncoding;
  const compression = (layers & Layer.Compressed) === 0 ? compressionOf(body) : undefined;
  if (compression === undefined || (compression === "base64" && (layers & Layer.Base64) !== 0))
    return undefined;
  return invalidEncoding(
    compression,
    form === "json" ? "it is JSON as it came" : "incorrect header check",
  );
}
