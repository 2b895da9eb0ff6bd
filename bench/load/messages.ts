// The messages between the main thread and the load threads. Types only.

import type { Counts } from "./generator.ts";
import type { Plan } from "./plan.ts";

export interface ThreadStart {
  readonly plan: Plan;
  readonly thread: number;
  readonly events: SharedArrayBuffer | undefined;
}

export interface Snapshot {
  readonly counts: Counts;
  readonly answers: ReadonlyMap<string, number>;
  /** The fraction of the time so far in which the thread was busy, 0 to 1. */
  readonly busy: number;
}

export type FromThread =
  | { readonly kind: "ready" }
  | { readonly kind: "snapshot"; readonly snapshot: Snapshot }
  /** Pairs of latencies in microseconds: since the request was due, and since it was sent. */
  | { readonly kind: "samples"; readonly microseconds: Uint32Array<ArrayBuffer> }
  | { readonly kind: "done"; readonly snapshot: Snapshot };

export type ToThread =
  /**
   * The time at which request 0 is due, in milliseconds on the clock of `process.hrtime`, which all
   * threads share.
   */
  { readonly kind: "start"; readonly startMs: number } | { readonly kind: "stop" };
