// What the intake needs of the publisher: frames, and who waits for their outcome.

import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { SentWithRuns } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Project } from "../projects/project.ts";

/**
 * What became of a frame.
 * - `stored`: acknowledged, new. `duplicate`: acknowledged, the stream had it from a request
 *   before.
 * - `refused`: certainly not stored.
 * - `unknown`: the deadline passed after it was sent; it may be stored or not. Not a failure, not a
 *   success.
 */
export type FrameOutcome = "stored" | "duplicate" | "refused" | "unknown";

/**
 * Is told once for each time it joined a frame, at its own deadline at the latest. `code` says why,
 * for `refused` and `unknown`. `events` and `bytes` are its part of the frame, and `messageBytes` its
 * part of what the message takes in the stream: plain numbers, so that no object is made for a
 * request. Must not throw.
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
   * Calls back at the end of the request. `isStored`: its client may take all its events for stored,
   * and does not send it again.
   */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/**
 * Group commit towards JetStream. All calls are synchronous; the outcome comes through the waiter.
 */
export interface Publisher {
  /**
   * Undefined when events can be taken now, else the code to refuse them with (`unavailable`,
   * `store_full`, `draining`). While the store is away, a small request is taken and waits for it.
   * Without `requestBytes` the request counts as large.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  /**
   * Undefined when the stream of the project's events is fit for them, else why it is not. A small
   * request also waits for a stream that acknowledges nothing.
   */
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  /** The name of the stream of the project's events. */
  streamOf(lane: Lane, projectId: string): string;
  /** The largest record that this stream takes, in bytes of payload. */
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** The largest frame, in bytes of payload. */
  readonly frameBytesMax: number;
  /**
   * The open frame for the project's lines on the lane, with room for at least `bytes` more (bytes
   * <= frameBytesMax). It may hold lines of other projects too, so each line must name its project.
   * Lines that no waiter has joined with yet are in it as well: they stay together in one frame.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * The lines appended since the last call are this waiter's. Group commit sends the frame. With
   * `uuidless` some of their events came without a uuid. If the same lines are in another frame
   * already, because their request timed out, they are taken out, and the waiter is told of that
   * frame instead.
   */
  join(frame: FrameSink, waiter: RequestWaiter, deadlineMs: number, uuidless?: SentWithRuns): void;
  /**
   * A frame of the caller's own, with room for `bytes` (may exceed frameBytesMax for one large
   * record).
   */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Submits an own frame. Its message id is the same when the client sends the same body again, or
   * "" for an id that only this submission has.
   */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  /** Gives an own frame back unused. */
  discard(frame: FrameSink): void;
}
