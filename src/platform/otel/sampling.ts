// Decides which requests are traced. The number of traced requests is limited, because a client may
// send any traceparent.

import { ROOT_CONTEXT, type SpanContext, TraceFlags } from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import { SamplingDecision, TraceIdRatioBasedSampler } from "@opentelemetry/sdk-trace";
import { RateWindow } from "../base/rate-window.ts";

const tracedPerSecondMax = 100;

interface SamplingOptions {
  readonly sampler: string;
  readonly ratio: number;
  readonly random?: () => number;
  readonly monotonicMs?: () => number;
}

export class Sampling {
  readonly #followsParent: boolean;
  readonly #ratio: number;
  readonly #byTraceId: TraceIdRatioBasedSampler;
  readonly #random: () => number;
  readonly #perSecond: RateWindow;
  limited = 0;

  constructor({ sampler, ratio, random = Math.random, ...options }: SamplingOptions) {
    const { monotonicMs = () => performance.now() } = options;
    this.#followsParent = sampler.startsWith("parentbased_");
    this.#ratio = sampler.endsWith("always_on") ? 1 : sampler.endsWith("always_off") ? 0 : ratio;
    this.#byTraceId = new TraceIdRatioBasedSampler(this.#ratio);
    this.#random = random;
    this.#perSecond = new RateWindow({ max: tracedPerSecondMax, monotonicMs });
  }

  takes(parent: SpanContext | undefined): boolean {
    if (!this.#isWanted(parent)) return false;
    if (this.#perSecond.isSpent) {
      this.limited++;
      return false;
    }
    this.#perSecond.spend(1);
    return true;
  }

  #isWanted(parent: SpanContext | undefined): boolean {
    if (parent === undefined) return this.#random() < this.#ratio;
    if (this.#followsParent) return (parent.traceFlags & TraceFlags.SAMPLED) !== 0;
    const { decision } = this.#byTraceId.shouldSample(ROOT_CONTEXT, parent.traceId);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  }
}

export function parentIn(traceparent: string): SpanContext | undefined {
  return (traceparent !== "" && parseTraceParent(traceparent)) || undefined;
}
