// The due time of each request, and the queue of requests that wait for a connection. A slow
// gateway delays requests but does not reduce their number. Requests beyond the queue's limit are
// not sent.

import { type Plan, requestsPerSecond, requestsTotal, shareOf } from "./plan.ts";

/**
 * One thread's share of the schedule: every `threads`-th request of the run, beginning with request
 * number `thread`.
 */
export interface Schedule {
  readonly count: number;
  readonly intervalMs: number;
  requestOf(index: number): number;
  /** In milliseconds on the clock of `startMs`. */
  dueAtMs(index: number): number;
}

export function createSchedule(plan: Plan, thread: number, startMs: number): Schedule {
  const intervalMs = 1_000 / requestsPerSecond(plan);
  const requestOf = (index: number): number => index * plan.threads + thread;
  return {
    count: shareOf(requestsTotal(plan), thread, plan.threads),
    intervalMs: intervalMs * plan.threads,
    requestOf,
    dueAtMs: (index) => startMs + requestOf(index) * intervalMs,
  };
}

interface Backlog {
  readonly length: number;
  push(index: number): boolean;
  shift(): number | undefined;
}

export function createBacklog(lengthMax: number): Backlog {
  const ring = new Uint32Array(lengthMax);
  let head = 0;
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(index) {
      if (length === lengthMax) return false;
      ring[(head + length) % lengthMax] = index;
      length += 1;
      return true;
    },
    shift() {
      if (length === 0) return undefined;
      const index = ring[head];
      head = (head + 1) % lengthMax;
      length -= 1;
      return index;
    },
  };
}
