// The publisher's interface to the intake: frames, and the waiters for their outcomes.

import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { SentWithRuns } from "../../platform/base/sent-with.ts";
import type { RequestSpan } from "../../platform/base/tracing.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Project } from "../projects/project.ts";

/**
 * The outcome of a frame.
 * - `stored`: acknowledged as new.
 * - `duplicate`: acknowledged, but already stored by an earlier request.
 * - `refused`: certainly not stored.
 * - `unknown`: sent, and not acknowledged by the deadline. It may be stored.
 */
export type FrameOutcome = "stored" | "duplicate" | "refused" | "unknown";

/**
 * Receives the outcome of each frame that it has joined, at the latest at its deadline. Must not
 * throw. `code` is the reason for `refused` or `unknown`. The numbers are the waiter's part of the
 * frame and, for `messageBytes`, of the message in the stream.
 */
export interface FrameWaiter {
  /** The span of the waiting request; undefined unless the request is sampled. */
  readonly span?: RequestSpan | undefined;
  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
    messageBytes: number,
  ): void;
}

export interface RequestWaiter extends FrameWaiter {
  readonly senderAddress: string;
  /** `isStored` means that the client received a 200 for all its events. */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/** Group commit to JetStream. All calls are synchronous. The waiter receives the outcome later. */
export interface Publisher {
  /**
   * Returns the code with which a request must be rejected now, if any. While the store is
   * unavailable, a small request is accepted and waits. If `requestBytes` is absent, the request
   * counts as large.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  /**
   * Returns why the project's stream cannot accept events, if so. Small requests may wait for it.
   */
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  streamOf(lane: Lane, projectId: string): string;
  /** Returns the largest record that the project's stream accepts, in bytes of payload. */
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** Maximum payload of a frame. An own frame with one large record may exceed it. */
  readonly frameBytesMax: number;
  /**
   * Returns the open frame with room for `bytes` more (at most `frameBytesMax`). It may have lines
   * of other projects. Lines that no waiter has joined with stay together in one frame.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Assigns to `waiter` the lines added since the previous call. `uuidless` states which events
   * have no uuid. If a frame of a timed-out request has the same lines, the waiter gets the outcome
   * of that frame instead.
   */
  join(frame: FrameSink, waiter: RequestWaiter, deadlineMs: number, uuidless?: SentWithRuns): void;
  /** Returns a frame that only the caller fills. One large record may exceed `frameBytesMax`. */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /** Queues an own frame. `messageId` is the same for the same events, or "" for a unique one. */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  discard(frame: FrameSink): void;
}
