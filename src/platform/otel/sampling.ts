// Decides which requests are traced. A client may send any traceparent, so the number of traced
// requests has a limit, whatever the clients ask for.

import { ROOT_CONTEXT, type SpanContext, TraceFlags } from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import { SamplingDecision, TraceIdRatioBasedSampler } from "@opentelemetry/sdk-trace";
import { RateWindow } from "../base/rate-window.ts";

/** Maximum number of traced requests per second and process. */
const tracedPerSecondMax = 100;

interface SamplingOptions {
  /** A value of OTEL_TRACES_SAMPLER, as the table of settings lists them. */
  readonly sampler: string;
  /** The share of requests that are traced, for samplers with a ratio. */
  readonly ratio: number;
  /** Returns a number from 0 to below 1. */
  readonly random?: () => number;
  readonly monotonicMs?: () => number;
}

export class Sampling {
  readonly #followsParent: boolean;
  readonly #ratio: number;
  readonly #byTraceId: TraceIdRatioBasedSampler;
  readonly #random: () => number;
  readonly #perSecond: RateWindow;
  /** Number of requests that were sampled, but not traced because of the limit. */
  limited = 0;

  constructor({ sampler, ratio, random = Math.random, ...options }: SamplingOptions) {
    const { monotonicMs = () => performance.now() } = options;
    this.#followsParent = sampler.startsWith("parentbased_");
    this.#ratio = sampler.endsWith("always_on") ? 1 : sampler.endsWith("always_off") ? 0 : ratio;
    this.#byTraceId = new TraceIdRatioBasedSampler(this.#ratio);
    this.#random = random;
    this.#perSecond = new RateWindow({ max: tracedPerSecondMax, monotonicMs });
  }

  /** Returns whether to trace a request whose client sent `parent`. */
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
    // A new trace gets a random id, so its id need not be known to draw.
    if (parent === undefined) return this.#random() < this.#ratio;
    if (this.#followsParent) return (parent.traceFlags & TraceFlags.SAMPLED) !== 0;
    const { decision } = this.#byTraceId.shouldSample(ROOT_CONTEXT, parent.traceId);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  }
}

/** Returns the context in the header `traceparent`; undefined if it is absent or invalid. */
export function parentIn(traceparent: string): SpanContext | undefined {
  return (traceparent !== "" && parseTraceParent(traceparent)) || undefined;
}
