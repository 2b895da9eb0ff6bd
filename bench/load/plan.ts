// What a load run is to do, in the form the threads get it. Plain data: it is copied into each of
// them.

import { randomBytes } from "node:crypto";

export interface Plan {
  /** Where every request goes, path included. */
  readonly url: string;
  readonly key: string;
  /**
   * Leads the UUID of every event of this run and of no other: 24 characters, the event's number in
   * 12 hex digits follows.
   */
  readonly uuidPrefix: string;
  /** Events per second, of all threads together. */
  readonly rate: number;
  /**
   * What is due in the first of it warms up: sent, counted and checked like the rest, but not in
   * the latencies.
   */
  readonly warmUpMs: number;
  /** Without the time to warm up. */
  readonly durationMs: number;
  /** Events in a request. */
  readonly batch: number;
  /** Of one event's JSON. */
  readonly eventBytes: number;
  readonly gzip: boolean;
  readonly threads: number;
  /** Of all threads together, as are the requests in the backlog. */
  readonly connections: number;
  readonly backlogMax: number;
  readonly timeoutMs: number;
  /**
   * After the last request was due: past it none is sent any more, and those under way have
   * `timeoutMs`.
   */
  readonly graceMs: number;
  readonly retry: boolean;
}

export function requestsPerSecond(plan: Plan): number {
  return plan.rate / plan.batch;
}

/** How many requests are due in the whole run. */
export function requestsTotal(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * (plan.warmUpMs + plan.durationMs)) / 1_000);
}

/** How many of these only warm up. */
export function requestsToWarmUp(plan: Plan): number {
  return Math.floor((requestsPerSecond(plan) * plan.warmUpMs) / 1_000);
}

/**
 * A prefix no other run has. The UUIDs are of version 8 (RFC 9562, section 5.8): their bits are the
 * maker's to say.
 */
export function newUuidPrefix(): string {
  const hex = randomBytes(9).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(12, 15)}-8${hex.slice(15, 18)}-`;
}

/** This thread's part of `total`: the parts of all threads add up to it. */
export function shareOf(total: number, thread: number, threads: number): number {
  return Math.floor((total + threads - 1 - thread) / threads);
}
