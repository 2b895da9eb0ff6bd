// The due time of each request, and the queue of requests that wait for a connection. Both have a
// fixed size before the run: a slow gateway delays requests but does not reduce their number.
// Requests beyond the queue's limit are not sent.

import { type Plan, requestsPerSecond, requestsTotal, shareOf } from "./plan.ts";

/**
 * One thread's share of the schedule: every `threads`-th request of the run, beginning with request
 * number `thread`.
 */
export interface Schedule {
  /** Number of requests of this thread. */
  readonly count: number;
  /** Milliseconds between two requests. */
  readonly intervalMs: number;
  /** Converts the thread's request `index` to the request's number in the whole run. */
  requestOf(index: number): number;
  /** Returns when a request is due, in milliseconds on the clock of `startMs`. */
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

/** A FIFO queue of whole numbers; `push` returns false when it is full. */
interface Backlog {
  readonly length: number;
  push(index: number): boolean;
  /** Removes and returns the oldest number; undefined if the queue is empty. */
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
