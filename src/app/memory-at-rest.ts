// Gives memory back to the system once the load that needed it is over. What is freed in pieces
// between blocks still in use the C library keeps, some 20 MiB after a few bodies of 20 MB. Asked
// for it, it gives whole pages back, in 1 to 2 ms; where there are none, in 0.1 ms. What JavaScript
// has left behind V8 keeps until it needs the room, which an idle process never does.

import { performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const everyMs = 10_000;
/** The event loop is at rest while it works for less than this share of the time. */
const restShare = 0.02;

interface MemoryAtRestOptions {
  /** Bodies in hand and lines not yet acknowledged. */
  readonly bytesInHand: () => number;
  readonly trim: () => void;
  readonly collect: () => void;
  /** Which share of the time since it was last asked the event loop has worked. */
  readonly workShare: () => number;
}

/**
 * Gives the function that ends it. `collect` is called once after each time of work, because it
 * stops the event loop.
 */
export function keepMemoryAtRest(options: MemoryAtRestOptions): () => void {
  const { bytesInHand, trim, collect, workShare } = options;
  let hasWorked = true;
  const timer = setInterval(() => {
    const isAtRest = workShare() < restShare;
    hasWorked ||= !isAtRest;
    if (bytesInHand() > 0) return;
    if (hasWorked && isAtRest) {
      hasWorked = false;
      collect();
      // What a large heap takes is no work after which to collect again.
      workShare();
    }
    trim();
  }, everyMs).unref();
  return () => clearInterval(timer);
}

/** Gives the share for `keepMemoryAtRest`; the first is since now. */
export function loopWorkShare(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}

/**
 * Collects all garbage and makes the young generation small again, which only the collection that
 * V8 makes as its last resort does. After bodies of 20 MB it takes 14 MiB off what is resident, and
 * stops the event loop for some 40 ms.
 */
export function garbageCollector(): () => void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  if (typeof collect !== "function") throw new Error("V8 gives no function that collects garbage");
  return () => {
    collect({ type: "major", execution: "sync", flavor: "last-resort" });
  };
}
