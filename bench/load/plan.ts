// The plan of a load run. Plain data, because it is copied into each thread.

import { randomBytes } from "node:crypto";

export interface Plan {
  readonly url: string;
  readonly key: string;
  /** The 24 characters before the event's number in each UUID. No other run has the same prefix. */
  readonly uuidPrefix: string;
  readonly rate: number;
  /** Only the latencies exclude the requests of the warm-up. */
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly batch: number;
  readonly eventBytes: number;
  readonly gzip: boolean;
  readonly threads: number;
  readonly connections: number;
  readonly backlogMax: number;
  readonly timeoutMs: number;
  /**
   * Duration after the last due request in which requests are still sent. Sent requests have
   * `timeoutMs` more to complete.
   */
  readonly graceMs: number;
  readonly retry: boolean;
}

export function requestsPerSecond(plan: Plan): number {
  return plan.rate / plan.batch;
}

export function requestsTotal(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * (plan.warmUpMs + plan.durationMs)) / 1_000);
}

export function requestsToWarmUp(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * plan.warmUpMs) / 1_000);
}

/** The version is 8 (RFC 9562, section 5.8), whose bits have no defined meaning. */
export function newUuidPrefix(): string {
  const hex = randomBytes(9).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-8${hex.slice(15, 18)}-`;
}

export function shareOf(total: number, thread: number, threads: number): number {
  return Math.floor((total + threads - 1 - thread) / threads);
}
