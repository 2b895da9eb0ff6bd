// Where the lines of one request go: those of a small one into its project's shared frame. Others
// have frames of their own (`own-frames.ts`).

import type { FrameSink, Lane, Project, Publisher } from "../base/types.ts";
import type { PendingRequest } from "./pending-request.ts";

export interface RequestFramesOptions {
  readonly publisher: Publisher;
  readonly lane: Lane;
  readonly project: Project;
  readonly pending: PendingRequest;
  readonly deadlineMs: number;
}

export interface RequestFrames {
  /**
   * A sink with room for a line of `bytes`, for the item at `index`, which came with a valid uuid
   * of its own or did not. Valid until the next call.
   */
  sinkFor(bytes: number, index: number, hasUuid: boolean): FrameSink;
  /**
   * Before other requests get a turn: a shared frame that has their lines too may leave in it, so
   * what is in it is handed over.
   */
  endTurn(): void;
  /** Hands over the last lines. */
  finish(): void;
  /** Takes back the lines that are not handed over yet, of a request that came to nothing. */
  abandon(): void;
}

export class SharedFrames implements RequestFrames {
  readonly #options: RequestFramesOptions;
  #frame: FrameSink | undefined = undefined;

  constructor(options: RequestFramesOptions) {
    this.#options = options;
  }

  sinkFor(bytes: number): FrameSink {
    const { publisher, lane, project } = this.#options;
    if (this.#frame !== undefined && this.#frame.length + bytes > publisher.frameBytesMax)
      this.finish();
    if (this.#frame === undefined || this.#frame.buffer.length - this.#frame.length < bytes)
      this.#frame = publisher.sharedFrame(lane, project, bytes);
    return this.#frame;
  }

  /** Before each call others have joined with theirs, so what is taken back is this request's. */
  abandon(): void {
    this.#frame?.rollback();
    this.#frame = undefined;
  }

  endTurn(): void {
    this.finish();
  }

  finish(): void {
    if (this.#frame === undefined) return;
    const { publisher, pending, deadlineMs } = this.#options;
    pending.expectFrame();
    publisher.join(this.#frame, pending, deadlineMs);
    this.#frame = undefined;
  }
}
