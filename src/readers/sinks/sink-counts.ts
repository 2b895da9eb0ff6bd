// Counts what a sink has stored since the process started.

import type { IncidentKind } from "../stream/resume.ts";
import type { BuiltBatch } from "./batch-builder.ts";
import type { RejectReason } from "./sink-records.ts";
import type { WriteOutcome } from "./sink-target.ts";

export interface CommitCounts {
  readonly batch: BuiltBatch;
  readonly outcome: WriteOutcome;
  readonly seconds: number;
  /** Including events that the target refused. */
  readonly rejected: readonly RejectReason[];
  readonly incidents: readonly IncidentKind[];
}

export class SinkCounts {
  readonly #onCommit: ((commit: CommitCounts | undefined) => void) | undefined;
  events = 0;
  duplicates = 0;
  rejected = 0;
  /** Refused events since the target last accepted one or reported a duplicate. */
  refusedInRow = 0;
  commits = 0;

  /** `onCommit` is called for every commit; for a failed batch, with undefined. */
  constructor(onCommit?: (commit: CommitCounts | undefined) => void) {
    this.#onCommit = onCommit;
  }

  written(batch: BuiltBatch, outcome: WriteOutcome, seconds: number): void {
    const refused = new Array<RejectReason>(outcome.refused).fill("value");
    const rejected = [...batch.rejected.map(({ reason }) => reason), ...refused];
    const incidents = batch.incidents.map(({ kind }) => kind);
    this.events += outcome.written;
    this.duplicates += outcome.duplicates;
    this.rejected += rejected.length;
    if (outcome.written + outcome.duplicates > 0) this.refusedInRow = 0;
    else this.refusedInRow += outcome.refused;
    this.commits++;
    this.#onCommit?.({ batch, outcome, seconds, rejected, incidents });
  }

  failed(): void {
    this.#onCommit?.(undefined);
  }
}
