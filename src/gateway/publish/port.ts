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
 * Must not throw. `code` is the reason for `refused` or `unknown`. The numbers are the waiter's
 * part of the frame. `messageBytes` is its part of the message in the stream.
 */
export interface FrameWaiter {
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
  /** `isStored` means that the answer was 200 for all events. */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/** Group commit to JetStream. All calls are synchronous. The waiter receives the outcome later. */
export interface Publisher {
  /**
   * Without `requestBytes`, the request counts as large. While the store is unavailable, a small
   * request is accepted and waits.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  streamOf(lane: Lane, projectId: string): string;
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** An own frame with one large record may exceed this size. */
  readonly frameBytesMax: number;
  /**
   * The frame has space for `bytes` more (at most `frameBytesMax`), and may have lines of other
   * projects. Lines without a waiter stay together in one frame.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Assigns to `waiter` the lines added since the previous call. `uuidless` states which events
   * have no uuid. A retry of a timed-out request gets the outcome of the frame that already has its
   * lines.
   */
  join(frame: FrameSink, waiter: RequestWaiter, deadlineMs: number, uuidless?: SentWithRuns): void;
  /** Returns a frame that only the caller fills. One large record may exceed `frameBytesMax`. */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /** Queues an own frame. `messageId` must be equal for equal events. "" makes the id unique. */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  discard(frame: FrameSink): void;
}
