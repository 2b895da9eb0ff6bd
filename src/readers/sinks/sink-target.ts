// The target of a sink. It stores events together with the positions of the streams. Positions
// never cover more events than were written.

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

/** A new stream has no position. */
export type Before = ReadonlyMap<string, Pick<StreamPosition, "epoch" | "sequence">>;

export interface SinkBatch {
  readonly before: Before;
  readonly positions: readonly SinkPosition[];
  /** In order within each stream. An event may occur twice, or be in the target already. */
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
  /** Maximum number of concurrent writes. Default: 1. Writes must end in order. */
  readonly batchesMax?: number;
  /** The positions on disk, if the target commits later than `write` returns. */
  readonly committed?: readonly SinkPosition[];
  readonly faults?: readonly string[];
  readonly warnings?: readonly string[];
  readonly requests?: ReadonlyMap<RequestOutcome, number>;
  /** Projects that wait while others continue, counted in each lane. */
  readonly waiting?: number;
  /**
   * Creates missing tables or folders, and returns the positions. Must not be called during a
   * write. Rejects with a StandbyError while another sink has the target.
   */
  open(): Promise<readonly SinkPosition[]>;
  /** Writes the batch or nothing. Rejects with a MovedError if the target is not at `before`. */
  write(batch: SinkBatch): Promise<WriteOutcome>;
  abortWaiting?(): void;
  close(): Promise<void>;
}

export class StandbyError extends Error {
  override name = "StandbyError";
}

/** Another program changed the target, or the target was restored to an older state. */
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

/** Throws a MovedError if the batch does not start at the target's positions. */
export function mustBeNext(
  { before, positions }: Pick<SinkBatch, "before" | "positions">,
  positionOf: (stream: string) => Pick<SinkPosition, "epoch" | "sequence"> | undefined,
): void {
  for (const { stream } of positions) {
    const [was, is] = [before.get(stream), positionOf(stream)];
    if (was?.epoch !== is?.epoch || was?.sequence !== is?.sequence) throw movedFrom(stream, was);
  }
}
