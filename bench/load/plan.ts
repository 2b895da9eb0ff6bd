// The plan of a load run, in the form that the threads get. Plain data, because it is copied into
// each thread.

import { randomBytes } from "node:crypto";

export interface Plan {
  /** The URL of every request, including the path. */
  readonly url: string;
  readonly key: string;
  /**
   * The 24 characters before the event's number in each UUID of this run. No other run has the same
   * prefix.
   */
  readonly uuidPrefix: string;
  /** Events per second of all threads together. */
  readonly rate: number;
  /** The duration of the warm-up. All results except the latencies include its requests. */
  readonly warmUpMs: number;
  /** The duration without the warm-up. */
  readonly durationMs: number;
  /** Events per request. */
  readonly batch: number;
  /** The size of one event's JSON in bytes. */
  readonly eventBytes: number;
  readonly gzip: boolean;
  readonly threads: number;
  /** Number of connections of all threads together. */
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

/** Returns the number of requests due in the whole run. */
export function requestsTotal(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * (plan.warmUpMs + plan.durationMs)) / 1_000);
}

/** Returns the number of requests of the warm-up. */
export function requestsToWarmUp(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * plan.warmUpMs) / 1_000);
}

/**
 * Returns a new UUID prefix. The version is 8 (RFC 9562, section 5.8), whose bits have no defined
 * meaning.
 */
export function newUuidPrefix(): string {
  const hex = randomBytes(9).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-8${hex.slice(15, 18)}-`;
}

/** Returns this thread's share of `total`. The shares of all threads add up to it. */
export function shareOf(total: number, thread: number, threads: number): number {
  return Math.floor((total + threads - 1 - thread) / threads);
}
