// What a path does with bodies that do not hold events as other paths do: it makes a batch of them,
// which goes to the intake like any other, and answers in its own form.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import type { FixedAnswer } from "../pages/fixed-answer.ts";
import type { IntakeReport } from "../port.ts";

export type ConversionKind = "otlp" | "multipart";

/** What a conversion knows of its request besides the body. */
export interface ConversionHead {
  readonly kind: ConversionKind;
  /** The project's key, "" if the request has none. */
  readonly apiKey: string;
  readonly contentType: string;
}

/** A request for the intake, in memory that can be transferred to another thread. */
export type Batch = Buffer<ArrayBuffer>;

/** One object for each request. */
export interface Conversion {
  readonly head: ConversionHead;
  /** Whether a body of no bytes is a request like any other. */
  readonly takesEmpty: boolean;
  /** A longer body is rejected without being read. */
  readonly bytesMax: number;
  /**
   * What `answer` needs of `convert`, which may run in another thread: a value that can be sent
   * there and back.
   */
  notes: unknown;
  convert(body: Buffer): Batch | Problem;
  /** The answer, once the batch is stored. */
  answer(report: IntakeReport): FixedAnswer | Problem;
}

export const missingKey: Problem = {
  code: "missing_api_key",
  detail: "The key of the project must be in the header Authorization, as Bearer <key>",
};

const encoder = new TextEncoder();

/** The batch of these events, which are JSON texts. */
export function batchOf(apiKey: string, events: readonly string[]): Batch {
  const text = `{"api_key":${JSON.stringify(apiKey)},"batch":[${events.join()}]}`;
  return Buffer.from(encoder.encode(text).buffer);
}
