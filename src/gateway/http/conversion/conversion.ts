// What a path does with bodies that do not hold events as other paths do: it makes a batch of them,
// which goes to the intake like any other, and answers in its own form.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import type { FixedAnswer } from "../pages/fixed-answer.ts";
import type { IntakeReport } from "../port.ts";

/** One object for each request. */
export interface Conversion {
  readonly apiKey: string;
  /** Whether a body of no bytes is a request like any other. */
  readonly takesEmpty: boolean;
  /**
   * Makes the batch, in steps that take a few milliseconds at most. The body must not change
   * before the last one.
   */
  convert(body: Buffer): Generator<undefined, Buffer | Problem>;
  /** The answer, once the batch is stored. */
  answer(report: IntakeReport): FixedAnswer | Problem;
}

export const missingKey: Problem = {
  code: "missing_api_key",
  detail: "The key of the project must be in the header Authorization, as Bearer <key>",
};

/** The batch of these events, which are JSON texts. */
export function batchOf(apiKey: string, events: readonly string[]): Buffer {
  return Buffer.from(`{"api_key":${JSON.stringify(apiKey)},"batch":[${events.join()}]}`);
}
