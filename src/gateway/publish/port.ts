// The interface of the publisher to the intake. It consists of frames, and of waiters that receive
// the outcomes of frames.

import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { SentWithRuns } from "../../platform/base/sent-with.ts";
import type { RequestSpan } from "../../platform/base/tracing.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Project } from "../projects/project.ts";

/**
 * The outcome of a frame.
 * - `stored`: the stream acknowledged it as new.
 * - `duplicate`: the stream acknowledged it, but an earlier request had already stored it.
 * - `refused`: it is certainly not stored.
 * - `unknown`: it was sent, but not acknowledged by the deadline. It may be stored.
 */
export type FrameOutcome = "stored" | "duplicate" | "refused" | "unknown";

/**
 * Receives the outcome of a frame, and must not throw. `code` is the reason if the outcome is
 * `refused` or `unknown`. `events` and `bytes` count only the lines of this waiter. `messageBytes`
 * is their share of the stored message.
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
  /** Registers a callback for the request's end. `isStored` is true if all events got a 200. */
  whenEnded(callback: (isStored: boolean) => void): void;
}

/**
 * Sends frames to JetStream and collects the acknowledgements. All calls are synchronous, and a
 * waiter receives the outcome later.
 */
export interface Publisher {
  /**
   * Returns the error for a request, or undefined to accept it. Without `requestBytes`, the request
   * counts as large. While the store is unavailable, a small request is still accepted, and waits.
   */
  refusal(requestBytes?: number): ErrorCode | undefined;
  refusalOf(lane: Lane, projectId: string, requestBytes?: number): Problem | undefined;
  streamOf(lane: Lane, projectId: string): string;
  recordBytesMaxOf(lane: Lane, projectId: string): number;
  /** The maximum size of a frame. Only an own frame with one large record may exceed it. */
  readonly frameBytesMax: number;
  /**
   * Returns a frame that has space for `bytes` more, which must be at most `frameBytesMax`. The
   * frame may contain lines of other projects. All lines that have no waiter yet stay together in
   * one frame.
   */
  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Assigns the lines that were added since the previous call to `waiter`. `uuidless` states which
   * of their events have no uuid. If the request is a retry after a timeout, it gets the outcome of
   * the frame that already contains its lines.
   */
  join(frame: FrameSink, waiter: RequestWaiter, deadlineMs: number, uuidless?: SentWithRuns): void;
  /** Returns a frame for lines of the caller alone. One large record may exceed `frameBytesMax`. */
  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink;
  /**
   * Queues an own frame. `messageId` must be the same for the same events. With "", the publisher
   * generates a unique id.
   */
  submit(frame: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void;
  discard(frame: FrameSink): void;
}
