// What a sink writes to, as the writer knows it: a place that takes events and how far each stream
// is read in one commit, and says at the start how far that was. Types, the two ways in which a
// target refuses, and what targets have in common. What a target cannot do in one commit it makes up
// for by what it finds there when it is opened: positions never stand for more than is written.

import type { Lane } from "../../platform/base/lane.ts";
import type { Incident, Place } from "../stream/resume.ts";
import type { StreamName } from "../stream/stored-stream.ts";
import type { RejectedLine, SinkRecord } from "./sink-records.ts";

/** How far a stream is in the target. */
export interface SinkPosition extends StreamName, Place {}

/** How a request of a batch ended, where a target takes a batch in several. */
export const requestOutcomes = ["taken", "retried", "halved", "refused", "stopped"] as const;
export type RequestOutcome = (typeof requestOutcomes)[number];

export interface SinkIncident extends Incident {
  readonly stream: string;
}

/** Where the target must be for a batch to be next; a stream that it does not know is absent. */
export type Before = ReadonlyMap<string, Pick<Place, "epoch" | "sequence">>;

export interface SinkBatch {
  readonly before: Before;
  /** How far it is with the batch: of each stream that has anything in it. */
  readonly positions: readonly SinkPosition[];
  /** In the order of each stream. An event may be there twice, or in the target already. */
  readonly events: readonly SinkRecord[];
  readonly rejected: readonly RejectedLine[];
  readonly incidents: readonly SinkIncident[];
}

export interface WriteOutcome {
  readonly written: number;
  /** Events that the target had. */
  readonly duplicates: number;
  /** Events that the target did not take, and has put aside. */
  readonly refused: number;
}

export interface SinkTarget {
  /** The target in words, without secrets. */
  readonly shown: string;
  /** So many batches may be written at once, and end in the order of their begin. Default 1. */
  readonly batchesMax?: number;
  /**
   * How far each stream is in the target for good, for a target whose `write` is fulfilled before
   * that: what is not committed is read again after an end of the process.
   */
  readonly committed?: readonly SinkPosition[];
  /** What hinders it beside its writes, or lets some of their events wait. */
  readonly faults?: readonly string[];
  /** What an operator should know, though events are written. */
  readonly warnings?: readonly string[];
  /** Requests to a target that takes batches in several, by how they ended. */
  readonly requests?: ReadonlyMap<RequestOutcome, number>;
  /** How many projects wait, in each lane, while others go on. */
  readonly waiting?: number;
  /**
   * Makes what is not there, and says how far each stream is. Called at the start and after each
   * failure, when nothing is being written. Rejects with a StandbyError while another sink has the
   * target.
   */
  open(): Promise<readonly SinkPosition[]>;
  /**
   * Writes all of it or nothing. Rejects with a MovedError where the target is not at `before`;
   * after any other error nobody knows which of the two it was.
   */
  write(batch: SinkBatch): Promise<WriteOutcome>;
  /** The sink ends: what waits to be tried again fails instead. */
  giveUpWaiting?(): void;
  /** Lets another sink have it. */
  close(): Promise<void>;
}

/** Another sink has the target: this one stands by. */
export class StandbyError extends Error {
  override name = "StandbyError";
}

/** Somebody else has written, or the target was put back to an older state. */
export class MovedError extends Error {
  override name = "MovedError";
}

/** Which events are wanted. Undefined: all. */
export interface SinkFilter {
  readonly projects: ReadonlySet<string> | undefined;
  readonly lanes: readonly Lane[] | undefined;
}

/**
 * For a target that cannot check it in the statement that moves its positions: whether a batch
 * begins where the target is. Throws a MovedError. `positionOf` returns where the target is;
 * undefined: it has no such stream.
 */
export function mustBeNext(
  { before, positions }: Pick<SinkBatch, "before" | "positions">,
  positionOf: (stream: string) => Pick<SinkPosition, "epoch" | "sequence"> | undefined,
): void {
  for (const { stream } of positions) {
    const [was, is] = [before.get(stream), positionOf(stream)];
    if (was?.epoch !== is?.epoch || was?.sequence !== is?.sequence)
      throw new MovedError(
        `the target is not at message ${was?.sequence ?? 0} of ${stream} any more`,
      );
  }
}
