// The plan of a load run, in the form that the threads get. Plain data: it is copied into each of
// them.

import { randomBytes } from "node:crypto";

export interface Plan {
  /** The URL of every request, including the path. */
  readonly url: string;
  readonly key: string;
  /**
   * The prefix of the UUID of every event of this run and of no other: 24 characters, followed by
   * the event's number in 12 hex digits.
   */
  readonly uuidPrefix: string;
  /** Events per second, of all threads together. */
  readonly rate: number;
  /**
   * Requests due in this first period warm up: they are sent, counted and checked like the rest,
   * but do not count in the latencies.
   */
  readonly warmUpMs: number;
  /** Excluding the time to warm up. */
  readonly durationMs: number;
  /** Events per request. */
  readonly batch: number;
  /** The size of one event's JSON. */
  readonly eventBytes: number;
  readonly gzip: boolean;
  readonly threads: number;
  /** For all threads together, like the requests in the backlog. */
  readonly connections: number;
  readonly backlogMax: number;
  readonly timeoutMs: number;
  /**
   * After this time since the last request was due, none is sent any more, and those in flight have
   * `timeoutMs`.
   */
  readonly graceMs: number;
  readonly retry: boolean;
}

export function requestsPerSecond(plan: Plan): number {
  return plan.rate / plan.batch;
}

/** The number of requests due in the whole run. */
export function requestsTotal(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * (plan.warmUpMs + plan.durationMs)) / 1_000);
}

/** The number of these that only warm up. */
export function requestsToWarmUp(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * plan.warmUpMs) / 1_000);
}

/**
 * A prefix no other run has. The UUIDs are of version 8 (RFC 9562, section 5.8), whose bits may be
 * chosen freely.
 */
export function newUuidPrefix(): string {
  const hex = randomBytes(9).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-8${hex.slice(15, 18)}-`;
}

/** This thread's part of `total`: the parts of all threads add up to it. */
export function shareOf(total: number, thread: number, threads: number): number {
  return Math.floor((total + threads - 1 - thread) / threads);
}
