// The result of a run in one object: the JSON report, and the source of the text report. Determines
// whether the run was a success.

import type { Histogram } from "hdr-histogram-js";
import type { StoredTally } from "./ledger.ts";
import { type Plan, requestsPerSecond } from "./plan.ts";
import type { Load } from "./threads.ts";

export interface Percentiles {
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface Result {
  readonly ok: boolean;
  readonly failures: readonly string[];
  readonly remarks: readonly string[];
  readonly interrupted: boolean;
  readonly run: Omit<Plan, "key">;
  readonly requests: {
    readonly due: number;
    readonly sent: number;
    readonly late: number;
    readonly notSent: number;
    readonly unanswered: number;
    readonly retries: number;
    readonly acknowledged: number;
    /** Fraction of the due requests that were acknowledged, 0 to 1. */
    readonly acknowledgedRatio: number;
  };
  readonly answers: Readonly<Record<string, number>>;
  /** In milliseconds; null if no request was acknowledged. */
  readonly latencyFromDueMs: Percentiles | null;
  readonly latencyFromSentMs: Percentiles | null;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly eventsPerSecond: number;
  readonly bodyBytes: number;
  readonly plainBytes: number;
  readonly stored: StoredTally | null;
}

export interface Outcome {
  readonly plan: Plan;
  readonly load: Load;
  readonly interrupted: boolean;
  readonly stored: StoredTally | undefined;
  readonly checkFailure: string | undefined;
  readonly p99MsMax: number | undefined;
}

const heldRatioMin = 0.99;
const busyRatioMax = 0.9;

export function resultOf(outcome: Outcome): Result {
  const { plan, load, interrupted, stored } = outcome;
  const { plainBytes, bodyBytes, backlog: _, ...requests } = load.counts;
  const { key: __, ...run } = plan;
  const seconds = load.elapsedMs / 1_000;
  const perSecond = seconds > 0 ? requests.acknowledged / seconds : 0;
  const failures = failuresOf(outcome);
  return {
    ok: failures.length === 0,
    failures,
    remarks: remarksOf(outcome),
    interrupted,
    run,
    requests: { ...requests, acknowledgedRatio: heldRatio(load) },
    answers: Object.fromEntries(load.answers),
    latencyFromDueMs: percentilesOf(load.fromDue),
    latencyFromSentMs: percentilesOf(load.fromSent),
    seconds,
    requestsPerSecond: perSecond,
    eventsPerSecond: perSecond * plan.batch,
    bodyBytes,
    plainBytes,
    stored: stored ?? null,
  };
}

export function isKeyRefused({ answers }: Pick<Load, "answers">): boolean {
  return answers.size > 0 && [...answers.keys()].every((label) => label.startsWith("401"));
}

function failuresOf({ load, stored, checkFailure, p99MsMax }: Outcome): string[] {
  const failures: string[] = [];
  if (isKeyRefused(load)) {
    failures.push(
      `every request was answered ${[...load.answers.keys()].join(", ")}: give the key of a project with --key; \`./penstock project list\` shows them, \`npm run up\` prints that of its project demo`,
    );
  }
  const held = heldRatio(load);
  if (held < heldRatioMin) {
    failures.push(
      `the rate was not held: ${percentText(held)} of the due requests were answered 200, ${percentText(heldRatioMin)} must be`,
    );
  }
  const p99 = percentilesOf(load.fromDue)?.p99;
  if (p99MsMax !== undefined && !(p99 !== undefined && p99 <= p99MsMax)) {
    failures.push(
      `the p99 is ${p99 === undefined ? "unknown" : `${p99} ms`}, at most ${p99MsMax} ms were requested`,
    );
  }
  if (checkFailure !== undefined)
    failures.push(`what is stored could not be checked: ${checkFailure}`);
  if (stored !== undefined && stored.lost > 0)
    failures.push(`${stored.lost} acknowledged events are not in the streams`);
  if (stored !== undefined && stored.storedMoreThanOnce > 0) {
    failures.push(`${stored.storedMoreThanOnce} events are stored more than once`);
  }
  return failures;
}

function remarksOf({ plan, load, interrupted }: Outcome): string[] {
  const remarks: string[] = [];
  if (interrupted)
    remarks.push("ended early: the numbers are of the requests that were due until then");
  const unanswered = load.counts.due - load.counts.acknowledged;
  if (unanswered > 0) {
    remarks.push(
      `${unanswered} due requests were not answered 200: had they been, the latencies would be worse`,
    );
  }
  if (load.busyMax > busyRatioMax) {
    const rate = Math.round(requestsPerSecond(plan));
    remarks.push(
      `a thread of this program was busy ${percentText(load.busyMax)} of the time: ${rate} requests/s may be its own limit; try --threads ${plan.threads + 1}`,
    );
  }
  return remarks;
}

function heldRatio({ counts }: Load): number {
  return counts.due === 0 ? 0 : counts.acknowledged / counts.due;
}

function percentilesOf(histogram: Histogram): Percentiles | null {
  if (histogram.totalCount === 0) return null;
  const at = (percentile: number): number => histogram.getValueAtPercentile(percentile) / 1_000;
  return {
    p50: at(50),
    p75: at(75),
    p90: at(90),
    p99: at(99),
    p999: at(99.9),
    max: histogram.maxValue / 1_000,
  };
}

/** Rounded down: 99.996 % is not 100 %. */
export function percentText(ratio: number): string {
  return `${(Math.floor(ratio * 10_000) / 100).toFixed(2)} %`;
}
