// What a sink writes to, as the writer knows it: a place that takes events and how far each stream
// is read in one commit, and says at the start how far that was. Types, and the two ways in which a
// target refuses. What a target cannot do in one commit it makes up for by what it finds there when
// it is opened: positions never stand for more than is written.

import type { Lane } from "../../platform/base/lane.ts";
import type { Incident, Place } from "../stream/resume.ts";
import type { StreamName } from "../stream/stored-stream.ts";

/** How far a stream is in the target. */
export interface SinkPosition extends StreamName, Place {}

/** An event as it was stored. Bytes are those of the frame: nobody may change them. */
export interface SinkRecord {
  readonly stream: string;
  readonly sequence: number;
  /** Index in the frame. */
  readonly line: number;
  /** When the stream stored it. */
  readonly storedAtMs: number;
  /** 36 characters, in lower case. */
  readonly uuid: string;
  readonly projectId: string;
  readonly event: string;
  readonly distinctId: string;
  /** Years 0 to 9999. */
  readonly timestampMs: number;
  readonly receivedAtMs: number;
  /** NaN: the record does not say. */
  readonly timestampSentMs: number;
  readonly sentAtMs: number;
  /** "": the record has none. */
  readonly ip: string;
  readonly kind: string;
  readonly personProfile: boolean;
  readonly historical: boolean;
  /** JSON, as it was sent. */
  readonly properties: Uint8Array;
  readonly set: Uint8Array | undefined;
  readonly setOnce: Uint8Array | undefined;
  readonly unset: Uint8Array | undefined;
  /** All of it, without the line feed. */
  readonly text: Uint8Array;
  /**
   * "": it has no person, or nobody asks for persons. Set once the batch is put together; the rest
   * is never changed.
   */
  personUuid: string;
}

/** What is put aside: a line that is no record, or an event that the target does not take. */
export const rejectReasons = ["not_json", "not_a_record", "wrong_project", "value"] as const;
export type RejectReason = (typeof rejectReasons)[number];

/** How a request of a batch ended, where a target takes a batch in several. */
export const requestOutcomes = ["taken", "retried", "halved", "refused", "stopped"] as const;
export type RequestOutcome = (typeof requestOutcomes)[number];

export interface RejectedLine {
  readonly stream: string;
  readonly sequence: number;
  readonly line: number;
  readonly storedAtMs: number;
  /** "": it cannot be told. */
  readonly projectId: string;
  readonly reason: RejectReason;
  readonly detail: string;
  readonly text: Uint8Array;
}

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
