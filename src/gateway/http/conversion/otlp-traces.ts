// Converts the spans of language models in an OTLP request over HTTP. The answer is the same as a
// collector's: if some spans are not stored, it reports a partial success.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Problem } from "../../../platform/base/errors.ts";
import type { IntakeReport } from "../port.ts";
import { type FixedAnswer, JSON_TYPE, nosniff } from "../reply.ts";
import { aiEventOf, eventAttributesOf, isAiKey, isAiSpan, type SpanParts } from "./ai-events.ts";
import { type Batch, batchOf, type Conversion, type ConversionHead } from "./conversion.ts";
import {
  type Attributes,
  MalformedOtlpError,
  type OtlpSpan,
  type ReadSpan,
  RejectedSpanError,
  spansMax,
} from "./otlp.ts";
import { jsonSpans } from "./otlp-json.ts";
import { protobufSpans } from "./otlp-protobuf.ts";

const bodyBytesMax = 4_194_304;
const eventBytesFree = 262_144;
const expansionMax = 8;
const eventBytesMax = 8_388_608;
const reasonsMax = 5;
const PROTOBUF_TYPE = "application/x-protobuf";

interface OtlpNotes {
  isJson: boolean;
  rejected: number;
  others: number;
  readonly reasons: string[];
}

export class OtlpTraces implements Conversion {
  readonly head: ConversionHead;
  readonly bytesMax = bodyBytesMax;
  notes: OtlpNotes = { isJson: false, rejected: 0, others: 0, reasons: [] };

  constructor(head: ConversionHead) {
    this.head = head;
  }

  /** An empty body is a valid protobuf message without fields. */
  get takesEmpty(): boolean {
    return this.#isProtobuf;
  }

  convert(body: Buffer): Batch | Problem {
    if (body.length > bodyBytesMax) {
      const detail = `A trace request may have at most ${bodyBytesMax} bytes (got ${body.length})`;
      return { code: "body_too_large", detail };
    }
    const { apiKey, contentType } = this.head;
    const isJson = /json/i.test(contentType) || (!this.#isProtobuf && body[0] === 0x7b);
    this.notes.isJson = isJson;
    if (!isJson && !this.#isProtobuf) {
      const detail = `The Content-Type must be ${PROTOBUF_TYPE} or ${JSON_TYPE} (got "${contentType.slice(0, 100)}")`;
      return { code: "invalid_payload", detail };
    }
    try {
      const events = this.#eventsOf(isJson ? jsonSpans(body) : protobufSpans(body), body);
      return Array.isArray(events) ? batchOf(apiKey, events) : events;
    } catch (error) {
      if (!(error instanceof MalformedOtlpError || error instanceof RejectedSpanError)) throw error;
      const form = isJson ? "JSON" : "protobuf";
      const detail = `The body is not an ExportTraceServiceRequest in ${form}: ${error.message}`;
      return { code: "invalid_payload", detail };
    }
  }

  answer({ dropped, errors, warnings }: IntakeReport): FixedAnswer {
    for (const { detail } of [...errors, ...warnings].slice(0, dropped)) this.#because(detail);
    const { isJson, others, reasons } = this.notes;
    const rejected = this.notes.rejected + dropped;
    let message =
      rejected > 0 ? `Spans that are not stored: ${rejected} (${reasons.join("; ")})` : "";
    if (rejected === 0 && others > 0)
      message = `Spans without an attribute of a language model (gen_ai. and the like) are not stored: ${others}`;
    return isJson ? jsonAnswer(rejected, message) : protobufAnswer(rejected, message);
  }

  get #isProtobuf(): boolean {
    return /protobuf/i.test(this.head.contentType);
  }

  #eventsOf(reads: Iterable<ReadSpan>, body: Buffer): string[] | Problem {
    const requestId = createHash("sha1").update(body).digest("hex");
    const mostBytes = Math.min(eventBytesMax, eventBytesFree + expansionMax * body.length);
    const events: string[] = [];
    let bytesLeft = mostBytes;
    let index = 0;
    let of: Attributes | undefined;
    let resource: Attributes = {};
    let resourceBytes = 0;
    for (const read of reads) {
      if (++index > spansMax)
        return {
          code: "too_many_events",
          detail: `A trace request may have at most ${spansMax} spans`,
        };
      if ("rejected" in read) this.#reject(read.rejected);
      else if (!isAiSpan(read.span)) this.#countOther(read.span);
      else {
        if (read.resource !== of) {
          of = read.resource;
          resource = eventAttributesOf(of);
          resourceBytes = Buffer.byteLength(JSON.stringify(resource));
        }
        const hasRoom = resourceBytes <= bytesLeft;
        const text = hasRoom ? textOf({ ...read, resource, requestId, index }) : "";
        // The bytes of the resource count even if the event is short, because a long resource takes
        // time to process.
        bytesLeft = hasRoom ? bytesLeft - Math.max(resourceBytes, Buffer.byteLength(text)) : -1;
        if (bytesLeft < 0) this.#reject(`the events of the request have over ${mostBytes} bytes`);
        else if (text === "") this.#reject("its values are nested too deeply");
        else events.push(text);
      }
    }
    return events;
  }

  #countOther({ valueless }: OtlpSpan): void {
    if (valueless.some(isAiKey))
      this.#reject("its attributes of a language model have no readable value");
    else this.notes.others++;
  }

  #reject(reason: string): void {
    this.notes.rejected++;
    this.#because(reason);
  }

  #because(reason: string): void {
    const { reasons } = this.notes;
    if (reasons.length < reasonsMax && !reasons.includes(reason)) reasons.push(reason);
  }
}

function textOf(parts: SpanParts): string {
  try {
    return JSON.stringify(aiEventOf(parts));
  } catch (error) {
    // The text of an attribute may contain JSON that is nested to any depth.
    if (!(error instanceof RangeError)) throw error;
    return "";
  }
}

function jsonAnswer(rejected: number, message: string): FixedAnswer {
  const partialSuccess = { rejectedSpans: String(rejected), errorMessage: message };
  const body = message === "" ? "{}\n" : `${JSON.stringify({ partialSuccess })}\n`;
  return { status: 200, headers: [["Content-Type", JSON_TYPE], nosniff], body };
}

function protobufAnswer(rejected: number, message: string): FixedAnswer {
  const text = Buffer.from(message);
  const partial = [
    ...(rejected > 0 ? [0x08, ...varint(rejected)] : []),
    ...(text.length > 0 ? [0x12, ...varint(text.length), ...text] : []),
  ];
  const body = partial.length === 0 ? [] : [0x0a, ...varint(partial.length), ...partial];
  return {
    status: 200,
    headers: [["Content-Type", PROTOBUF_TYPE], nosniff],
    body: Uint8Array.from(body),
  };
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return bytes;
}
