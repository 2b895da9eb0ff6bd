// Unpacks the first bytes of a packed body, to peek at them before the body is whole or its turn
// has come: some kilobytes at most. What cannot be unpacked without more of the body is left as it
// is.

import { BodyMemory } from "./body-memory.ts";
import type { BodyCoding, Compression } from "./codings.ts";
import { inflateStart } from "./inflate.ts";
import { LzDecoder } from "./lz-decoder.ts";
import { formOf, Layer } from "./payload-form.ts";
import { PercentDecoder } from "./step-decoder.ts";

const STEP_BYTES_MAX = 4_096;
/** A payload may lie in a form, in base64 and in a compression, each once. */
const LAYERS_MAX = 3;

export function startOfPayload(
  bytes: Buffer,
  coding: BodyCoding,
  compression: Compression | undefined,
): Buffer {
  if (coding === "deflate" || coding === "br" || coding === "zstd")
    return inflateStart(coding, bytes);
  let start = bytes;
  let layers = 0;
  for (let count = 0; count < LAYERS_MAX; count++) {
    start = start.subarray(0, STEP_BYTES_MAX);
    const form = formOf(start, layers, compression);
    switch (form) {
      case "json":
      case "unknown":
      case "twice":
        return start;
      case "gzip":
        return inflateStart("gzip", start);
      case "lz64":
        return lzStart(start);
      case "base64":
        layers |= Layer.Base64;
        start = Buffer.from(start.toString("latin1").replaceAll(" ", "+"), "base64");
        break;
      default:
        layers |= Layer.Form;
        // The decoder works on a copy: it writes over what it reads, and the body is still to be
        // read.
        start =
          new PercentDecoder(Buffer.from(start), form.dataStart, form.dataEnd).step() ?? start;
    }
  }
  return start;
}

function lzStart(text: Buffer): Buffer {
  const options = {
    bytesMax: STEP_BYTES_MAX * 1_024,
    memory: new BodyMemory(),
    isKnown: () => true,
    hold: () => true,
  };
  const decoder = new LzDecoder(text, options);
  const result = decoder.step();
  return result !== undefined && "bytes" in result ? result.bytes() : decoder.begun();
}
