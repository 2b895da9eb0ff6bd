import { BodyMemory } from "./body-memory.ts";
import type { BodyCoding, Compression } from "./codings.ts";
import { inflateStart, peekedInflatedBytesMax } from "./inflate.ts";
import { LzDecoder } from "./lz-decoder.ts";
import { formOf, Layer } from "./payload-form.ts";
import { PercentDecoder, plainBase64 } from "./step-decoder.ts";

const STEP_BYTES_MAX = 4_096;
/** A form, base64 and a compression. */
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
        start = base64Start(start);
        break;
      default:
        layers |= Layer.Form;
        // A copy, because the decoder overwrites its input, and the body is still needed.
        start =
          new PercentDecoder(Buffer.from(start), form.dataStart, form.dataEnd).step() ?? start;
    }
  }
  return start;
}

function base64Start(text: Buffer): Buffer {
  const copy = Buffer.from(text);
  return Buffer.from(copy.toString("latin1", 0, plainBase64(copy, 0, copy.length)), "base64");
}

/**
 * The memory of all peeks. A pool per peek would hold blocks outside every limit: 33 MB of requests
 * without a key used 2 GB.
 */
const peekMemory = new BodyMemory();

function lzStart(text: Buffer): Buffer {
  const options = {
    bytesMax: STEP_BYTES_MAX * 1_024,
    memory: peekMemory,
    isKnown: () => true,
    hold: () => true,
  };
  const decoder = new LzDecoder(text, options);
  const result = decoder.step();
  const buffer = result !== undefined && "bytes" in result ? result : undefined;
  const start = Buffer.from(
    (buffer?.bytes() ?? decoder.begun()).subarray(0, peekedInflatedBytesMax),
  );
  buffer?.free();
  decoder.free();
  return start;
}
