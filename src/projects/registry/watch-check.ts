// Notices that a watch of the registry's bucket has died: when a node of a cluster is lost, the
// watch that it served falls silent, and nobody says so. Compares it with the bucket, one small
// question at a time. A slow store is no lost watch: what it does not answer counts as unknown, so
// that a store in trouble is not asked for everything anew. Must not read entries.

import { setTimeout as delay } from "node:timers/promises";
import type { BucketReader } from "./bucket-state.ts";

/** Kept by whoever reads the watch. */
export interface WatchProgress {
  /** When the bucket was made. */
  readonly created: string;
  revision: number;
  /** Every key that it has given out an entry of, also a marker: the bucket holds one of each. */
  readonly keys: Set<string>;
  isRead: boolean;
  heardMonotonicMs: number;
  /** Whether the last question found the watch where the bucket is. Kept by the checks. */
  isConfirmed: boolean;
}

export interface WatchCheck {
  readonly watch: { stop(): void };
  readonly progress: WatchProgress;
  readonly intervalMs: number;
}

export interface WatchChecks {
  stop(): void;
  /**
   * Settled when the checks have ended. Rejected when the watch was ended because nobody could say
   * how the bucket stands.
   */
  readonly ended: Promise<void>;
}

/** The first reading of a watch counts as stuck after this long without an entry. */
const silentMsMax = 5_000;
/** How long a change may be on its way to the watch before the watch counts as lost. */
const laggingMsMax = 1_000;
const laggingStepMs = 20;
const unansweredInARowMax = 3;

/**
 * Ends the watch when the bucket is ahead of it or holds less, or is another bucket or none, or the
 * first reading got stuck.
 */
export function checkOften(
  reader: BucketReader,
  { watch, progress, intervalMs }: WatchCheck,
): WatchChecks {
  const stopping = new AbortController();
  const stop = { signal: stopping.signal, ref: false };

  async function isLost(): Promise<boolean> {
    // As it was when the question left: changes may come in before the answer, which does not know
    // of them.
    const { revision, keys } = progress;
    const entriesMin = keys.size;
    const state = await reader.state();
    if (state?.created !== progress.created || state.lastSequence < revision) return true;
    // A purge, or an age limit, takes entries away and tells nobody.
    if (state.entries < entriesMin) return true;
    if (state.lastSequence > progress.revision) {
      progress.isConfirmed = false;
      // Mostly the change is only on its way: then keys are in doubt for a moment and not for a
      // second.
      const sinceMs = performance.now();
      while (progress.revision < state.lastSequence) {
        if (performance.now() - sinceMs > laggingMsMax) return true;
        await delay(laggingStepMs, undefined, stop);
      }
    }
    progress.isConfirmed = true;
    return false;
  }

  async function check(): Promise<void> {
    try {
      while (!progress.isRead) {
        await delay(Math.min(intervalMs, silentMsMax), undefined, stop);
        if (!progress.isRead && performance.now() - progress.heardMonotonicMs > silentMsMax) return;
      }
      for (let unanswered = 0; ; ) {
        await delay(intervalMs, undefined, stop);
        try {
          if (await isLost()) return;
          unanswered = 0;
        } catch (error) {
          progress.isConfirmed = false;
          if (stopping.signal.aborted || ++unanswered >= unansweredInARowMax) throw error;
        }
      }
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    } finally {
      watch.stop();
    }
  }

  const ended = check();
  // It is awaited when the watch has ended, which may be later.
  ended.catch(() => {});
  return { stop: () => stopping.abort(), ended };
}
