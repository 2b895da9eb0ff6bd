// Decides which requests are traced. The number of traced requests is limited, because a client may
// send any traceparent. Requests without a project have a limit of their own: otherwise, a client
// without a key could use up the limit of all projects.

import { ROOT_CONTEXT, type SpanContext, TraceFlags } from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import { SamplingDecision, TraceIdRatioBasedSampler } from "@opentelemetry/sdk-trace";
import { RateWindow } from "../base/rate-window.ts";

const tracedPerSecondMax = 100;
const withoutProjectPerSecondMax = 10;

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
  readonly #withoutProject: RateWindow;
  limited = 0;

  constructor({ sampler, ratio, random = Math.random, ...options }: SamplingOptions) {
    const { monotonicMs = () => performance.now() } = options;
    this.#followsParent = sampler.startsWith("parentbased_");
    this.#ratio = sampler.endsWith("always_on") ? 1 : sampler.endsWith("always_off") ? 0 : ratio;
    this.#byTraceId = new TraceIdRatioBasedSampler(this.#ratio);
    this.#random = random;
    this.#perSecond = new RateWindow({ max: tracedPerSecondMax, monotonicMs });
    this.#withoutProject = new RateWindow({ max: withoutProjectPerSecondMax, monotonicMs });
  }

  /** Returns whether the request may be traced, before its project is known. */
  wants(parent: SpanContext | undefined): boolean {
    if (!this.#isWanted(parent)) return false;
    if (!this.#perSecond.isSpent) return true;
    this.limited++;
    return false;
  }

  /** Returns whether a wanted request is traced. Must be called at most once per request. */
  takes({ hasProject }: { readonly hasProject: boolean }): boolean {
    const limit = hasProject ? this.#perSecond : this.#withoutProject;
    if (limit.isSpent) {
      this.limited++;
      return false;
    }
    limit.spend(1);
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
