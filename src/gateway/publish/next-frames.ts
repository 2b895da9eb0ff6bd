// Removes the next frame from a queue. Sets the frame's message id, unless the caller has set it.
// Does not decide whether the frame is sent.

import type { Frame, FrameQueue } from "./frame.ts";

interface NextFramesOptions {
  readonly processId: string;
  /** Takes back a frame that has no waiters. */
  readonly discard: (frame: Frame) => void;
}

export class NextFrames {
  readonly #processId: string;
  readonly #discard: NextFramesOptions["discard"];
  #lastSharedId = 0;

  constructor({ processId, discard }: NextFramesOptions) {
    this.#processId = processId;
    this.#discard = discard;
  }

  /**
   * Returns the frame that is sent next without removing it; undefined if the queue has no frame.
   */
  peek({ sealed, open }: FrameQueue): Frame | undefined {
    for (let frame = sealed.first; frame !== undefined; frame = sealed.first) {
      // A frame without waiters contains only lines of requests that failed half-way, so no client
      // expects them to be stored.
      if (frame.waiters.length > 0) return frame;
      sealed.shift();
      this.#discard(frame);
    }
    return open === undefined || open.waiters.length === 0 ? undefined : open;
  }

  /** Removes and returns the frame that is sent next; undefined if the queue has no frame. */
  of(queue: FrameQueue): Frame | undefined {
    const frame = this.peek(queue);
    if (frame === undefined) return undefined;
    if (frame === queue.open) queue.open = undefined;
    else queue.sealed.shift();
    return this.#named(frame);
  }

  #named(frame: Frame): Frame {
    if (frame.messageId === "")
      frame.messageId = `${this.#processId}-${(++this.#lastSharedId).toString(36)}`;
    return frame;
  }
}
