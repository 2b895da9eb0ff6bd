// Notices that a watch of the registry's bucket has died: when a node of a cluster is lost, the
// watch that it served falls silent, and nobody says so. Compares the watch with the bucket, one
// small question at a time. A question without an answer does not yet count as a lost watch, so
// that a slow store is not asked for everything anew. Must not read entries.

import { setTimeout as delay } from "node:timers/promises";
import type { BucketReader } from "./bucket-state.ts";

/** How far a watch has been read. Kept by the reader of the watch, except `isConfirmed`. */
export interface WatchProgress {
  /** When the bucket was made. */
  readonly created: string;
  revision: number;
  /**
   * Every key of which the watch has given out an entry or a deletion marker. The bucket holds one
   * of each.
   */
  readonly keys: Set<string>;
  isRead: boolean;
  heardMonotonicMs: number;
  /** Whether the last question found the watch up to date with the bucket. Kept by the checks. */
  isConfirmed: boolean;
}

interface WatchCheck {
  readonly watch: { stop(): void };
  readonly progress: WatchProgress;
  readonly intervalMs: number;
}

interface WatchChecks {
  stop(): void;
  /**
   * Settled when the checks have ended. Rejected when they ended the watch because several
   * questions in a row went unanswered.
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
 * While a question has no answer for this long, nothing is confirmed: the store may have been cut
 * off from this gateway, and go on taking projects from others.
 */
const unansweredMsMax = 250;

/**
 * Ends the watch when the bucket is ahead of it, ends before it or holds fewer entries; when the
 * bucket was made anew or is gone; or when the first reading is stuck.
 */
export function checkOften(
  reader: BucketReader,
  { watch, progress, intervalMs }: WatchCheck,
): WatchChecks {
  const stopping = new AbortController();
  const stop = { signal: stopping.signal, ref: false };

  async function isLost(): Promise<boolean> {
    // The progress when the question is sent: changes may come in before the answer, which does not
    // know of them.
    const { revision, keys } = progress;
    const entriesMin = keys.size;
    const state = await stateOf(reader, progress);
    if (state?.created !== progress.created || state.lastSequence < revision) return true;
    // A purge, or an age limit, takes entries away and tells nobody.
    if (state.entries < entriesMin) return true;
    if (state.lastSequence > progress.revision) {
      progress.isConfirmed = false;
      // Mostly the change is only on its way to the watch. With these small steps, unknown keys are
      // in doubt for a moment and not for a second.
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
  // The caller awaits `ended` only when the watch has ended, which may be after a rejection.
  ended.catch(() => {});
  return { stop: () => stopping.abort(), ended };
}

/** Asks the bucket. Until a late answer is there, the watch counts as unconfirmed. */
async function stateOf(reader: BucketReader, progress: WatchProgress) {
  const late = setTimeout(() => {
    progress.isConfirmed = false;
  }, unansweredMsMax);
  try {
    return await reader.state();
  } finally {
    clearTimeout(late);
  }
}
