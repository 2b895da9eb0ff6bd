// The interface of a sink's target. A target stores events together with the positions of the
// streams, and returns the positions when it is opened. If a target cannot store both in one
// commit, it compares its events with its positions when it is opened. Positions never cover more
// events than were written.

import type { Lane } from "../../platform/base/lane.ts";
import type { Incident, StreamPosition } from "../stream/resume.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import type { RejectedLine, SinkRecord } from "./sink-records.ts";

/** The position up to which a stream is written to the target. */
export interface SinkPosition extends StreamName, StreamPosition {}

/** Outcomes of a request, for a target that sends a batch in several requests. */
export const requestOutcomes = ["taken", "retried", "halved", "refused", "stopped"] as const;
export type RequestOutcome = (typeof requestOutcomes)[number];

export interface SinkIncident extends Incident {
  readonly stream: string;
}

/**
 * The positions that the target must have before the batch, by stream. A new stream has no entry.
 */
export type Before = ReadonlyMap<string, Pick<StreamPosition, "epoch" | "sequence">>;

export interface SinkBatch {
  readonly before: Before;
  /** Positions after the batch of all streams in the batch. */
  readonly positions: readonly SinkPosition[];
  /** Events in the order of each stream. An event may appear twice, or be in the target already. */
  readonly events: readonly SinkRecord[];
  readonly rejected: readonly RejectedLine[];
  readonly incidents: readonly SinkIncident[];
}

export interface WriteOutcome {
  readonly written: number;
  /** Number of events that the target already had. */
  readonly duplicates: number;
  /** Number of events that the target refused and that were stored as rejected. */
  readonly refused: number;
}

export interface SinkTarget {
  /** Description of the target, without secrets. */
  readonly shown: string;
  /**
   * Maximum number of concurrent writes; 1 by default. They must complete in the order they were
   * started.
   */
  readonly batchesMax?: number;
  /**
   * Positions up to which the target is durable, for a target whose `write` is fulfilled earlier.
   * Later messages are read again after a restart.
   */
  readonly committed?: readonly SinkPosition[];
  /** Problems other than failed writes, such as events that wait. */
  readonly faults?: readonly string[];
  /** Warnings for the operator that do not prevent events from being written. */
  readonly warnings?: readonly string[];
  /** Number of requests by outcome, for a target that sends a batch in several requests. */
  readonly requests?: ReadonlyMap<RequestOutcome, number>;
  /** Number of projects that wait in each lane while others continue. */
  readonly waiting?: number;
  /**
   * Creates missing tables or folders, and returns the positions. Called at the start and after
   * each failure, when no write is running. Rejects with a StandbyError while another sink has the
   * target.
   */
  open(): Promise<readonly SinkPosition[]>;
  /**
   * Writes the batch completely or not at all. Rejects with a MovedError if the target is not at
   * `before`. After any other error, it is unknown whether the batch was written.
   */
  write(batch: SinkBatch): Promise<WriteOutcome>;
  /** Makes waiting retries fail, because the sink is closing. */
  abortWaiting?(): void;
  /** Releases the target for another sink. */
  close(): Promise<void>;
}

/** Another sink has the target, so this sink stands by. */
export class StandbyError extends Error {
  override name = "StandbyError";
}

/** Another program has written to the target, or the target was restored to an older state. */
export class MovedError extends Error {
  override name = "MovedError";
}

/** Selects events by project and lane. An undefined field selects all. */
export interface SinkFilter {
  readonly projects: ReadonlySet<string> | undefined;
  readonly lanes: readonly Lane[] | undefined;
}

/**
 * Throws a MovedError if the batch does not start at the target's position. For a target that
 * cannot check the position in the statement that advances it. `positionOf` returns the target's
 * position of a stream; undefined if the target does not have the stream.
 */
export function mustBeNext(
  { before, positions }: Pick<SinkBatch, "before" | "positions">,
  positionOf: (stream: string) => Pick<SinkPosition, "epoch" | "sequence"> | undefined,
): void {
  for (const { stream } of positions) {
    const [was, is] = [before.get(stream), positionOf(stream)];
    if (was?.epoch !== is?.epoch || was?.sequence !== is?.sequence)
      throw new MovedError(`the target is no longer at message ${was?.sequence ?? 0} of ${stream}`);
  }
}
