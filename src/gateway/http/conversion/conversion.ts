// The interface for paths whose bodies must be converted to events. A conversion turns a body into
// a batch, and writes the answer in its own form. The intake processes the batch like any other
// batch.

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

/** A body for the intake, in memory that can be transferred to another thread. */
export type Batch = Buffer<ArrayBuffer>;

export interface Conversion {
  readonly head: ConversionHead;
  readonly takesEmpty: boolean;
  /** Maximum bytes of a body. The gateway rejects a longer body without reading it. */
  readonly bytesMax: number;
  /** Data that `convert` passes to `answer`. Must be transferable from another thread. */
  notes: unknown;
  convert(body: Buffer): Batch | Problem;
  /** Returns the answer. Called once the batch is stored. */
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
