import type { Problem } from "../../platform/base/errors.ts";
import type { TurnBudget } from "../../platform/base/turn-budget.ts";
import type { Coding } from "./codings.ts";
import { atOnceInflatedBytesMax, inflateAtOnce, workOf } from "./inflate.ts";
import { type QuickInflater, QuickInflation } from "./quick-inflation.ts";

interface AtOnceInflationOptions {
  readonly inflatedBytesMax: number;
  readonly monotonicMs: () => number;
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

  /** Returns the inflated body, valid until the next call. Undefined: no time in this iteration. */
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
    // A body that fails here counts by time alone, because its bytes are counted below.
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
    // A failed inflation may have written up to the maximum size on the event loop.
    const bytesWritten = Buffer.isBuffer(result) ? result.length : atOnceInflatedBytesMax;
    budget.spend(workOf({ bytesRead: bytes.length, bytesWritten, ms }));
    return result;
  }
}

const nothing = { bytesRead: 0, bytesWritten: 0 };
