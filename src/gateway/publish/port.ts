// The publisher's interface to the intake: frames, and the waiters for their outcomes.

import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { SentWithRuns } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Project } from "../projects/project.ts";

/**
 * The outcome of a frame.
 * - `stored`: acknowledged as new.
 * - `duplicate`: acknowledged, but already stored by an earlier request.
 * - `refused`: certainly not stored.
 * - `unknown`: the frame was sent, and the deadline passed without an acknowledgement. The frame
 *   may be stored.
 */
export type FrameOutcome = "stored" | "duplicate" | "refused" | "unknown";

/**
 * A receiver of a frame's outcome. It is called once for each time it joined a frame, at the latest
 * at its deadline, and must not throw.
 * - `code`: the reason for `refused` and `unknown`.
 * - `events`, `bytes`: the waiter's part of the frame.
 * - `messageBytes`: the waiter's part of the message's size in the stream.
 * The arguments are plain numbers, so that a request needs no object.
 */
export interface FrameWaiter {
  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
    messageBytes: number,
  ): void;
}

/** A request that joins shared frames. */
export interface RequestWaiter extends FrameWaiter {
  /** The address of the request's client. */
  readonly senderAddress: string;
  /**
   * Calls `callback` at the end of the request. `isStored`: the client received the answer that all
   * its events are stored, and does not retry.
   */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/** Group commit to JetStream. All calls are synchronous. The waiter receives the outcome later. */
export interface Publisher {
  /**
   * Returns the code to refuse events with now (`unavailable`, `store_full`, `draining`); undefined
   * if events are accepted. While the store is unavailable, a small request is accepted and waits.
   * Without `requestBytes` the request counts as large.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  /**
   * Returns why the stream of the project's events cannot accept them; undefined if it can. If the
   * stream acknowledges nothing, a small request is accepted and waits.
   */
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  /** Returns the name of the stream of the project's events. */
  streamOf(lane: Lane, projectId: string): string;
  /**
   * Returns the size of the largest record that the project's stream accepts, in bytes of payload.
   */
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /**
   * Maximum size of a frame in bytes of payload. An own frame with one large record may exceed it.
   */
  readonly frameBytesMax: number;
  /**
   * Returns the open frame for the project's lines on the lane, with room for at least `bytes` more
   * (at most `frameBytesMax`). The frame may contain lines of other projects, so each line must
   * name its project. Lines that no waiter has joined with stay together in one frame.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Assigns the lines that were appended since the last call to this waiter. The publisher sends
   * the frame later. `uuidless`: the events that were sent without a uuid. If an earlier request
   * with the same lines timed out and its frame still exists, the new lines are removed. The waiter
   * then receives the outcome of the earlier frame.
   */
  join(frame: FrameSink, waiter: RequestWaiter, deadlineMs: number, uuidless?: SentWithRuns): void;
  /**
   * Returns a frame that only the caller fills, with room for `bytes`. For one large record,
   * `bytes` may exceed `frameBytesMax`.
   */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Queues an own frame for sending. `messageId` must be the same when a client retries the same
   * events, so that the store recognizes a stored frame. If it is "", the publisher creates an id
   * that is unique to this submission.
   */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  /** Takes back an unused own frame. */
  discard(frame: FrameSink): void;
}

/** Why a send was not acknowledged. The list is closed, because a cause is a metrics label. */
export const ackFailureCauses = [
  "timeout",
  "disconnected",
  "no_responders",
  "store_full",
  "refused",
  "batch_refused",
  "in_flight",
  "foreign",
  "malformed",
] as const;
export type AckFailureCause = (typeof ackFailureCauses)[number];

/**
 * How an atomic batch ended. `stored`: one acknowledgement covers all its frames. `parted`: the
 * batch was not acknowledged and was split, so its frames are sent again, each alone.
 */
export const batchOutcomes = ["stored", "parted"] as const;
export type BatchOutcome = (typeof batchOutcomes)[number];

export interface PublishMetrics {
  /** Counts a frame at its first send. `bytes`: the size of its payload. */
  frameSent(lane: Lane, events: number, bytes: number): void;
  /** Counts an acknowledged frame. `seconds`: the time since its first send. */
  frameAcked(lane: Lane, seconds: number): void;
  frameRetried(): void;
  /** Counts an atomic batch at its end. */
  batchEnded(outcome: BatchOutcome, frames: number): void;
  ackFailed(cause: AckFailureCause): void;
  /** Counts an acknowledged frame that the stream already had. */
  duplicateFrame(lane: Lane, events: number): void;
}
