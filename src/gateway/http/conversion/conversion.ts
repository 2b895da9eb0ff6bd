// The interface for paths whose bodies must be converted to events. A conversion turns a body into
// a batch, which the intake processes like any other body, and answers in its own form.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import type { FixedAnswer } from "../pages/fixed-answer.ts";
import type { IntakeReport } from "../port.ts";

export type ConversionKind = "otlp" | "multipart";

/** The data of a request, besides the body, that a conversion uses. */
export interface ConversionHead {
  readonly kind: ConversionKind;
  /** The project's key; "" if the request has no key. */
  readonly apiKey: string;
  readonly contentType: string;
}

/** A body for the intake, in memory that can be transferred to another thread. */
export type Batch = Buffer<ArrayBuffer>;

/** Converts the body of one request and answers the request. */
export interface Conversion {
  readonly head: ConversionHead;
  /** Whether an empty body is a valid request. */
  readonly takesEmpty: boolean;
  /** Maximum bytes of a body. A longer body is rejected without being read. */
  readonly bytesMax: number;
  /**
   * The results of `convert` that `answer` needs. `convert` may run in another thread, so the value
   * must be transferable.
   */
  notes: unknown;
  convert(body: Buffer): Batch | Problem;
  /** Returns the answer; called once the batch is stored. */
  answer(report: IntakeReport): FixedAnswer | Problem;
}

export const missingKey: Problem = {
  code: "missing_api_key",
  detail: "The key of the project must be in the header Authorization, as Bearer <key>",
};

const encoder = new TextEncoder();

/** Returns the batch of the events, which are JSON texts. */
export function batchOf(apiKey: string, events: readonly string[]): Batch {
  const text = `{"api_key":${JSON.stringify(apiKey)},"batch":[${events.join()}]}`;
  return Buffer.from(encoder.encode(text).buffer);
}
