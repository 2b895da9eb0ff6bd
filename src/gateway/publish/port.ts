// The publisher's interface to the intake: frames, and the waiters for their outcome.

import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { SentWithRuns } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Project } from "../projects/project.ts";

/**
 * The outcome of a frame.
 * - `stored`: acknowledged as new. `duplicate`: acknowledged, and already stored by an earlier
 *   request.
 * - `refused`: certainly not stored.
 * - `unknown`: the deadline passed after it was sent, and it may be stored or not. Neither a
 *   failure nor a success.
 */
export type FrameOutcome = "stored" | "duplicate" | "refused" | "unknown";

/**
 * Notified once for each time it joined a frame, at its own deadline at the latest. `code` is the
 * reason for `refused` and `unknown`. `events` and `bytes` are its part of the frame, and
 * `messageBytes` its part of the message's size in the stream. They are plain numbers, so that a
 * request needs no object. Must not throw.
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
  /** The address of its client. */
  readonly senderAddress: string;
  /**
   * Calls back at the end of the request. `isStored`: its client was answered that all its events
   * are stored, and does not retry.
   */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/**
 * Group commit towards JetStream. All calls are synchronous; the outcome comes through the waiter.
 */
export interface Publisher {
  /**
   * Undefined if events are accepted now, else the code to refuse them with (`unavailable`,
   * `store_full`, `draining`). While the store is away, a small request is accepted and waits.
   * Without `requestBytes` the request counts as large.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  /**
   * Undefined if the stream of the project's events is fit for them, else the reason. A small
   * request also waits for a stream that acknowledges nothing.
   */
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  /** The name of the stream of the project's events. */
  streamOf(lane: Lane, projectId: string): string;
  /** The largest record that this stream accepts, in bytes of payload. */
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** The largest frame, in bytes of payload. */
  readonly frameBytesMax: number;
  /**
   * The open frame for the project's lines on the lane, with room for at least `bytes` more (bytes
   * <= frameBytesMax). It may contain lines of other projects, so each line must name its project.
   * It also contains the lines that no waiter has joined with yet: they stay together in one frame.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Assigns the lines appended since the last call to this waiter. Group commit sends the frame.
   * `uuidless` marks events that were sent without a uuid. If an earlier request with the same
   * lines timed out and its frame still exists, the lines are removed, and the waiter gets the
   * outcome of that frame instead.
   */
  join(frame: FrameSink, waiter: RequestWaiter, deadlineMs: number, uuidless?: SentWithRuns): void;
  /**
   * Returns a frame that only the caller fills, with room for `bytes` (may exceed frameBytesMax for
   * one large record).
   */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Submits an own frame. Its message id is the same whenever the client sends the same body. ""
   * stands for an id that is unique to this submission.
   */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  /** Returns an unused own frame. */
  discard(frame: FrameSink): void;
}
