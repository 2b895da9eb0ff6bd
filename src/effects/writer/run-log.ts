// The frames that were applied as runs, in the order in which the streams took turns, as far as it
// decides anything: between the lanes of a partition always, and among partitions where a project
// went from one to another, as it does when their number changes.

import type { StoredFrame } from "../../reading/stored-frame.ts";
import type { Run } from "../types.ts";

/** Projects whose partition is remembered; some 100 bytes each. */
const projectsMax = 100_000;

interface OpenRun extends Run {
  to: number;
}

export class RunLog {
  readonly #projectsMax: number;
  /** The last run of each partition, where it may become longer. */
  readonly #open = new Map<number, OpenRun>();
  readonly #changed = new Set<OpenRun>();
  readonly #partitions = new Map<string, number>();
  #lastProject = "";
  #lastPartition = -1;

  constructor(most = projectsMax) {
    this.#projectsMax = most;
  }

  /** Forgets all: what an earlier session wrote is not made longer. */
  begin(): void {
    this.#endRuns();
    this.#changed.clear();
    this.#partitions.clear();
    this.#lastPartition = -1;
  }

  /** For each line, before its frame is added. */
  see(projectId: string, partition: number): void {
    if (projectId === this.#lastProject && partition === this.#lastPartition) return;
    this.#lastProject = projectId;
    this.#lastPartition = partition;
    const before = this.#partitions.get(projectId);
    if (before === partition) return;
    // Where it was is not known of one that was forgotten, either.
    const isFull = before === undefined && this.#partitions.size >= this.#projectsMax;
    if (isFull) this.#partitions.clear();
    if (isFull || before !== undefined) this.#endRuns();
    this.#partitions.set(projectId, partition);
  }

  /** A run has no gap: what was deleted before it was applied is not missed by a rebuild. */
  add({ stream, partition, epoch, sequence }: StoredFrame): void {
    let run = this.#open.get(partition);
    const goesOn = run?.stream === stream && run.epoch === epoch && run.to === sequence - 1;
    if (run !== undefined && goesOn) run.to = sequence;
    else run = { stream, partition, epoch, from: sequence, to: sequence };
    this.#open.set(partition, run);
    this.#changed.add(run);
  }

  /** Those that are new or longer since the last time, each as a whole. */
  take(): readonly Run[] {
    const runs = [...this.#changed].map((run) => ({ ...run }));
    this.#changed.clear();
    return runs;
  }

  /** What comes now comes behind all that was there, in every partition. */
  #endRuns(): void {
    this.#open.clear();
  }
}
