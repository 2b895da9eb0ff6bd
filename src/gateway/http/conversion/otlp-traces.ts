// Takes the spans of language models out of a request of OpenTelemetry's exporters (OTLP over HTTP,
// in protobuf or JSON), and answers as a collector does: what is not stored is in the answer's
// partial success.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Problem } from "../../../platform/base/errors.ts";
import { type FixedAnswer, JSON_TYPE, nosniff } from "../pages/fixed-answer.ts";
import type { IntakeReport } from "../port.ts";
import { aiEventOf, isAiSpan } from "./ai-events.ts";
import { batchOf, type Conversion, missingKey } from "./conversion.ts";
import { MalformedOtlpError, type ReadSpan, RejectedSpanError, spansMax } from "./otlp.ts";
import { jsonSpans } from "./otlp-json.ts";
import { protobufSpans } from "./otlp-protobuf.ts";

/** As PostHog's capture has it. */
const bodyBytesMax = 4_194_304;
/** Bytes of the body that are hashed in one step, which takes a few tenths of a millisecond. */
const hashedBytesMax = 262_144;
/**
 * Each event has the attributes of its resource, so events may be larger than their request. The
 * events of one request may have this many bytes, and `expansionMax` times those of its body more.
 */
const eventBytesFree = 262_144;
const expansionMax = 8;
const eventBytesMax = 8_388_608;
/** Reasons in one answer. */
const reasonsMax = 5;
const PROTOBUF_TYPE = "application/x-protobuf";

export class OtlpTraces implements Conversion {
  readonly apiKey: string;
  readonly #contentType: string;
  #isJson = false;
  #rejected = 0;
  #others = 0;
  readonly #reasons: string[] = [];

  constructor(apiKey: string, contentType: string) {
    this.apiKey = apiKey;
    this.#contentType = contentType.toLowerCase();
  }

  /** A message of protobuf in which nothing is set has no bytes. */
  get takesEmpty(): boolean {
    return this.#isProtobuf;
  }

  *convert(body: Buffer): Generator<undefined, Buffer | Problem> {
    if (this.apiKey === "") return missingKey;
    if (body.length > bodyBytesMax) {
      const detail = `A trace request may have ${bodyBytesMax} bytes, and this one has ${body.length}`;
      return { code: "body_too_large", detail };
    }
    this.#isJson = this.#contentType.includes("json") || (!this.#isProtobuf && body[0] === 0x7b);
    if (!this.#isJson && !this.#isProtobuf) {
      const detail = `The Content-Type must be ${PROTOBUF_TYPE} or ${JSON_TYPE} (got "${this.#contentType.slice(0, 100)}")`;
      return { code: "invalid_payload", detail };
    }
    const events: string[] = [];
    const requestId = yield* hashOf(body);
    const mostBytes = Math.min(eventBytesMax, eventBytesFree + expansionMax * body.length);
    let bytesLeft = mostBytes;
    let spans = 0;
    try {
      for (const read of this.#isJson ? jsonSpans(body) : protobufSpans(body)) {
        yield;
        if (read === undefined) continue;
        if (++spans > spansMax) {
          const detail = `A trace request may have ${spansMax} spans`;
          return { code: "too_many_events", detail };
        }
        const event = this.#unlessDeep(() => this.#eventOf(read, requestId, spans));
        if (event === undefined) continue;
        yield;
        const text = this.#unlessDeep(() => JSON.stringify(event));
        if (text === undefined) continue;
        bytesLeft -= Buffer.byteLength(text);
        if (bytesLeft < 0) this.#reject(`the events of the request have over ${mostBytes} bytes`);
        else events.push(text);
      }
    } catch (error) {
      if (!(error instanceof MalformedOtlpError || error instanceof RejectedSpanError)) throw error;
      const form = this.#isJson ? "JSON" : "protobuf";
      const detail = `The body is no ExportTraceServiceRequest in ${form}: ${error.message}`;
      return { code: "invalid_payload", detail };
    }
    return batchOf(this.apiKey, events);
  }

  answer({ dropped, errors, warnings }: IntakeReport): FixedAnswer {
    for (const { detail } of [...errors, ...warnings].slice(0, dropped)) this.#because(detail);
    const rejected = this.#rejected + dropped;
    const reasons = this.#reasons.join("; ");
    let message = rejected > 0 ? `Spans that are not stored: ${rejected} (${reasons})` : "";
    // With no rejected spans the message is a warning.
    if (rejected === 0 && this.#others > 0)
      message = `Spans without an attribute of a language model (gen_ai. and the like) are not stored: ${this.#others}`;
    return this.#isJson ? jsonAnswer(rejected, message) : protobufAnswer(rejected, message);
  }

  get #isProtobuf(): boolean {
    return this.#contentType.includes("protobuf");
  }

  /** The event of a span; undefined if it is none, or is rejected. */
  #eventOf(
    read: ReadSpan,
    requestId: string,
    index: number,
  ): ReturnType<typeof aiEventOf> | undefined {
    if ("rejected" in read) {
      this.#reject(read.rejected);
      return undefined;
    }
    if (!isAiSpan(read.span)) {
      this.#others++;
      return undefined;
    }
    return aiEventOf({ ...read, requestId, index });
  }

  /** What `make` returns; undefined, and the span is rejected, if it takes too much of the stack. */
  #unlessDeep<T>(make: () => T): T | undefined {
    try {
      return make();
    } catch (error) {
      // The text of an attribute may hold JSON of any depth, which takes the stack.
      if (!(error instanceof RangeError)) throw error;
      this.#reject("its values are nested too deeply");
      return undefined;
    }
  }

  #reject(reason: string): void {
    this.#rejected++;
    this.#because(reason);
  }

  #because(reason: string): void {
    if (this.#reasons.length < reasonsMax && !this.#reasons.includes(reason))
      this.#reasons.push(reason);
  }
}

/** The hash of the body, in steps. A client that sends a request again sends the same bytes. */
function* hashOf(body: Buffer): Generator<undefined, string> {
  const hash = createHash("sha1");
  for (let at = 0; at < body.length; at += hashedBytesMax) {
    hash.update(body.subarray(at, at + hashedBytesMax));
    yield;
  }
  return hash.digest("hex");
}

function jsonAnswer(rejected: number, message: string): FixedAnswer {
  const partialSuccess = { rejectedSpans: String(rejected), errorMessage: message };
  const body = message === "" ? "{}\n" : `${JSON.stringify({ partialSuccess })}\n`;
  return { status: 200, headers: [["Content-Type", JSON_TYPE], nosniff], body };
}

/** An ExportTraceServiceResponse, which is empty if there is nothing to say. */
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
