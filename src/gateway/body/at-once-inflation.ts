// Inflates small bodies on the event loop, if the turn has time for it: in the addon or, if that
// fails, with node:zlib, which also reports what is wrong with a body. Limits the bytes that all
// bodies inflate to in a turn.

import type { Problem } from "../../platform/base/errors.ts";
import type { TurnBudget } from "../../platform/base/turn-budget.ts";
import type { Coding } from "./codings.ts";
import { atOnceInflatedBytesMax, inflateAtOnce, workOf } from "./inflate.ts";
import { type QuickInflater, QuickInflation } from "./quick-inflation.ts";

interface AtOnceInflationOptions {
  readonly inflatedBytesMax: number;
  readonly monotonicMs: () => number;
  /** In bytes of output, as counted by `workOf`. */
  readonly budget: TurnBudget;
  readonly inflater: QuickInflater | undefined;
}

export class AtOnceInflation {
  readonly #options: AtOnceInflationOptions;
  readonly #quick: QuickInflation | undefined;

  constructor(options: AtOnceInflationOptions) {
    const { inflater, inflatedBytesMax } = options;
    this.#options = options;
    this.#quick = inflater && new QuickInflation(inflater, inflatedBytesMax);
  }

  /**
   * Returns the inflated body, in memory that is valid until the next call, or what is wrong with
   * it; undefined if this is more work than the turn has time for.
   */
  inflate(coding: Coding, bytes: Buffer): Buffer | Problem | undefined {
    return this.#quickly(coding, bytes) ?? this.#usually(coding, bytes);
  }

  #quickly(coding: Coding, bytes: Buffer): Buffer | undefined {
    const { budget, monotonicMs } = this.#options;
    if (this.#quick === undefined || budget.isSpent) return undefined;
    const startedMs = monotonicMs();
    const result = this.#quick.inflated(coding, bytes);
    const ms = monotonicMs() - startedMs;
    const done = { bytesRead: bytes.length, bytesWritten: result?.length ?? 0 };
    // A body that fails here counts by the time alone: its bytes count below.
    budget.spend(workOf({ ...(result === undefined ? nothing : done), ms }));
    return result;
  }

  #usually(coding: Coding, bytes: Buffer): Buffer | Problem | undefined {
    const { budget, inflatedBytesMax, monotonicMs } = this.#options;
    if (budget.isSpent) return undefined;
    const startedMs = monotonicMs();
    const result = inflateAtOnce(coding, bytes, inflatedBytesMax);
    const ms = monotonicMs() - startedMs;
    if (result === undefined) {
      budget.spend(workOf({ ...nothing, ms }));
      return undefined;
    }
    // A failed inflation may have written as much as is tried at once.
    const bytesWritten = Buffer.isBuffer(result) ? result.length : atOnceInflatedBytesMax;
    budget.spend(workOf({ bytesRead: bytes.length, bytesWritten, ms }));
    return result;
  }
}

const nothing = { bytesRead: 0, bytesWritten: 0 };
