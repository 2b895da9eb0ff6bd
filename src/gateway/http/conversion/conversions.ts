// The conversions by their kind, for both threads.

import { AiMultipart } from "./ai-multipart.ts";
import type { Conversion, ConversionHead } from "./conversion.ts";
import { OtlpTraces } from "./otlp-traces.ts";

export function conversionFor(head: ConversionHead): Conversion {
  return head.kind === "otlp" ? new OtlpTraces(head) : new AiMultipart(head);
}
