// The interface of a sink's target: it stores events together with the positions of the streams,
// and returns the positions when it is opened. A target that cannot store both in one commit
// compares its events with its positions when it is opened: positions never cover more than is
// written.

import type { Lane } from "../../platform/base/lane.ts";
import type { Incident, StreamPosition } from "../stream/resume.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import type { RejectedLine, SinkRecord } from "./sink-records.ts";

/** How far a stream is in the target. */
export interface SinkPosition extends StreamName, StreamPosition {}

/** How a request of a batch ended, if a target sends a batch in several requests. */
export const requestOutcomes = ["taken", "retried", "halved", "refused", "stopped"] as const;
export type RequestOutcome = (typeof requestOutcomes)[number];

export interface SinkIncident extends Incident {
  readonly stream: string;
}

/** The position that the target must have before the batch; a new stream is absent. */
export type Before = ReadonlyMap<string, Pick<StreamPosition, "epoch" | "sequence">>;

export interface SinkBatch {
  readonly before: Before;
  /** The position after the batch of each stream that is in it. */
  readonly positions: readonly SinkPosition[];
  /** In the order of each stream. An event may appear twice, or be in the target already. */
  readonly events: readonly SinkRecord[];
  readonly rejected: readonly RejectedLine[];
  readonly incidents: readonly SinkIncident[];
}

export interface WriteOutcome {
  readonly written: number;
  /** Events that the target already had. */
  readonly duplicates: number;
  /** Events that the target refused and that were stored as rejected. */
  readonly refused: number;
}

export interface SinkTarget {
  /** The target as a text, without secrets. */
  readonly shown: string;
  /**
   * Maximum number of concurrent writes. They must complete in the order they were started.
   * Default: 1.
   */
  readonly batchesMax?: number;
  /**
   * The positions up to which the target is durable, for a target whose `write` is fulfilled before
   * that: the rest is read again after a restart.
   */
  readonly committed?: readonly SinkPosition[];
  /** Problems other than failed writes, or events that wait. */
  readonly faults?: readonly string[];
  /** Warnings for the operator although events are written. */
  readonly warnings?: readonly string[];
  /** Number of requests by outcome, for a target that sends a batch in several. */
  readonly requests?: ReadonlyMap<RequestOutcome, number>;
  /** Number of projects that wait in each lane while others continue. */
  readonly waiting?: number;
  /**
   * Creates what is missing, and returns the positions. Called at the start and after each failure,
   * when no write is running. Rejects with a StandbyError while another sink has the target.
   */
  open(): Promise<readonly SinkPosition[]>;
  /**
   * Writes the batch completely or not at all. Rejects with a MovedError if the target is not at
   * `before`; after any other error it is unknown whether the batch was written.
   */
  write(batch: SinkBatch): Promise<WriteOutcome>;
  /** The sink is closing: waiting retries fail instead. */
  abortWaiting?(): void;
  /** Releases the target for another sink. */
  close(): Promise<void>;
}

/** Another sink has the target: this one stands by. */
export class StandbyError extends Error {
  override name = "StandbyError";
}

/** Another program has written, or the target was restored to an older state. */
export class MovedError extends Error {
  override name = "MovedError";
}

/** Selects events. Undefined: all. */
export interface SinkFilter {
  readonly projects: ReadonlySet<string> | undefined;
  readonly lanes: readonly Lane[] | undefined;
}

/**
 * Checks whether a batch starts at the target's position, for a target that cannot check it in the
 * statement that advances its positions. Throws a MovedError. `positionOf` returns the target's
 * position; undefined: it has no such stream.
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
