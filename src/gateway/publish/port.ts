// The publisher's interface to the intake: frames, and waiters for the outcomes of frames.

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
 * A waiter: usually a request, which waits for the outcomes of the frames with its lines. Receives
 * each outcome at its deadline at the latest. Must not throw. `code` is the reason for `refused` or
 * `unknown`. The numbers are the waiter's part of the frame. `messageBytes` is its part of the
 * message in the stream.
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
  /** Calls the callback at the end. `isStored` means that the answer was 200 for all events. */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/** Group commit to JetStream. All calls are synchronous. The waiter receives the outcome later. */
export interface Publisher {
  /**
   * Returns the code with which a request must be rejected now, if any. While the store is
   * unavailable, a small request is accepted and waits. Without `requestBytes`, the request counts
   * as large.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  /** Returns why the project's stream cannot accept events, if so. Small requests may wait. */
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  streamOf(lane: Lane, projectId: string): string;
  /** Returns the largest record that the project's stream accepts, in bytes of payload. */
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** Maximum payload of a frame. An own frame with one large record may exceed this size. */
  readonly frameBytesMax: number;
  /**
   * Returns the open frame with space for `bytes` more (at most `frameBytesMax`). It may have lines
   * of other projects. Lines without a waiter stay together in one frame.
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
  /** Queues an own frame. `messageId` must be equal for equal events. "" makes the id unique. */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  discard(frame: FrameSink): void;
}
