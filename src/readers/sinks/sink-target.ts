// The target of a sink. It stores events together with the positions of the streams. A position is
// stored only after all events up to it.

import type { Lane } from "../../platform/base/lane.ts";
import type { Incident, StreamPosition } from "../stream/resume.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import type { RejectedLine, SinkRecord } from "./sink-records.ts";

export interface SinkPosition extends StreamName, StreamPosition {}

export const requestOutcomes = ["taken", "retried", "halved", "refused", "stopped"] as const;
export type RequestOutcome = (typeof requestOutcomes)[number];

export interface SinkIncident extends Incident {
  readonly stream: string;
}

/** The positions before a batch, by stream. A new stream has no position. */
export type Before = ReadonlyMap<string, Pick<StreamPosition, "epoch" | "sequence">>;

export interface SinkBatch {
  readonly before: Before;
  readonly positions: readonly SinkPosition[];
  /** The events, in order within each stream. The target may already contain some of them. */
  readonly events: readonly SinkRecord[];
  readonly rejected: readonly RejectedLine[];
  readonly incidents: readonly SinkIncident[];
}

export interface WriteOutcome {
  readonly written: number;
  readonly duplicates: number;
  readonly refused: number;
}

export interface SinkTarget {
  readonly shown: string;
  /** Maximum number of concurrent writes. They must end in the order of the calls. Default: 1. */
  readonly batchesMax?: number;
  /** The committed positions. They are undefined if every `write` commits before it returns. */
  readonly committed?: readonly SinkPosition[];
  readonly faults?: readonly string[];
  readonly warnings?: readonly string[];
  readonly requests?: ReadonlyMap<RequestOutcome, number>;
  /** Number of waiting projects. A project that waits in both lanes counts twice. */
  readonly waiting?: number;
  /**
   * Creates missing tables or folders, and returns the positions. The caller must not call it
   * during a write. Rejects with a StandbyError if another sink uses the target.
   */
  open(): Promise<readonly SinkPosition[]>;
  /**
   * Writes all or nothing. Rejects with a MovedError if the target's positions are not `before`.
   */
  write(batch: SinkBatch): Promise<WriteOutcome>;
  abortWaiting?(): void;
  close(): Promise<void>;
}

export class StandbyError extends Error {
  override name = "StandbyError";
}

/** Thrown if another program changed the target, or an older state of it was restored. */
export class MovedError extends Error {
  override name = "MovedError";
}

export interface SinkFilter {
  readonly projects: ReadonlySet<string> | undefined;
  readonly lanes: readonly Lane[] | undefined;
}

export function movedFrom(stream: string, was: Pick<SinkPosition, "sequence"> | undefined) {
  return new MovedError(
    `another writer has moved the target's position in ${stream}: it is no longer at message ${was?.sequence ?? 0}`,
  );
}

/** Throws a MovedError if the batch does not start at the positions of the target. */
export function mustBeNext(
  { before, positions }: Pick<SinkBatch, "before" | "positions">,
  positionOf: (stream: string) => Pick<SinkPosition, "epoch" | "sequence"> | undefined,
): void {
  for (const { stream } of positions) {
    const [was, is] = [before.get(stream), positionOf(stream)];
    if (was?.epoch !== is?.epoch || was?.sequence !== is?.sequence) throw movedFrom(stream, was);
  }
}
