// The interface for paths whose bodies are in another form: a conversion turns them into a batch,
// which goes to the intake like any other, and answers in its own form.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import type { FixedAnswer } from "../pages/fixed-answer.ts";
import type { IntakeReport } from "../port.ts";

export type ConversionKind = "otlp" | "multipart";

/** The data of a request, besides the body, that a conversion uses. */
export interface ConversionHead {
  readonly kind: ConversionKind;
  /** The project's key, "" if the request has none. */
  readonly apiKey: string;
  readonly contentType: string;
}

/** A request for the intake, in memory that can be transferred to another thread. */
export type Batch = Buffer<ArrayBuffer>;

/** One object per request. */
export interface Conversion {
  readonly head: ConversionHead;
  /** Whether an empty body is a valid request. */
  readonly takesEmpty: boolean;
  /** A longer body is rejected without being read. */
  readonly bytesMax: number;
  /**
   * The results of `convert` that `answer` needs. `convert` may run in another thread, so the value
   * must be transferable.
   */
  notes: unknown;
  convert(body: Buffer): Batch | Problem;
  /** Returns the answer, once the batch is stored. */
  answer(report: IntakeReport): FixedAnswer | Problem;
}

export const missingKey: Problem = {
  code: "missing_api_key",
  detail: "The key of the project must be in the header Authorization, as Bearer <key>",
};

const encoder = new TextEncoder();

/** Returns the batch of these events, which are JSON texts. */
export function batchOf(apiKey: string, events: readonly string[]): Batch {
  const text = `{"api_key":${JSON.stringify(apiKey)},"batch":[${events.join()}]}`;
  return Buffer.from(encoder.encode(text).buffer);
}
