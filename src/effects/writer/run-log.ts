// The frames of a batch as runs: which were applied one after another, in the order in which the
// streams of a partition took turns.

import type { StoredFrame } from "../lines/line.ts";
import type { Run } from "../types.ts";

export class RunLog {
  #runs: Run[] = [];

  /** A run has no gap: what was deleted before it was applied is not missed by a rebuild. */
  add({ stream, partition, epoch, sequence }: StoredFrame): void {
    const at = this.#runs.findLastIndex((run) => run.partition === partition);
    const last = this.#runs[at];
    const goesOn = last?.stream === stream && last.epoch === epoch && last.to === sequence - 1;
    if (goesOn) this.#runs[at] = { ...last, to: sequence };
    else this.#runs.push({ stream, partition, epoch, from: sequence, to: sequence });
  }

  /** All of them since the last time. */
  take(): readonly Run[] {
    const runs = this.#runs;
    this.#runs = [];
    return runs;
  }
}
