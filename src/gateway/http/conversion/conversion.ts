// The interface for paths whose bodies must be converted to events. A conversion turns a body into
// a batch of events, and turns the result into an answer.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import type { ConversionKind } from "../paths.ts";
import type { IntakeReport } from "../port.ts";
import type { FixedAnswer } from "../reply.ts";

export interface ConversionHead {
  readonly kind: ConversionKind;
  readonly apiKey: string;
  readonly contentType: string;
}

export type Batch = Buffer<ArrayBuffer>;

export interface Conversion {
  readonly head: ConversionHead;
  readonly takesEmpty: boolean;
  /** The gateway rejects a longer body without reading it. */
  readonly bytesMax: number;
  /** Data that `convert` passes on to `answer`. It must be possible to send it between threads. */
  notes: unknown;
  convert(body: Buffer): Batch | Problem;
  answer(report: IntakeReport): FixedAnswer | Problem;
}

export const missingKey: Problem = {
  code: "missing_api_key",
  detail: "The key of the project must be in the header Authorization, as Bearer <key>",
};

const encoder = new TextEncoder();

export function batchOf(apiKey: string, events: readonly string[]): Batch {
  const text = `{"api_key":${JSON.stringify(apiKey)},"batch":[${events.join()}]}`;
  return Buffer.from(encoder.encode(text).buffer);
}
