// Takes the next frame out of a queue and names it, if its caller has not. Must not decide whether
// it is sent.

import type { Frame, FrameQueue } from "./frame.ts";

interface NextFramesOptions {
  readonly processId: string;
  /** Takes back a frame in which nobody waits for a line. */
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

  /** The frame that is to leave next, and stays in the queue; undefined when that has none. */
  peek({ sealed, open }: FrameQueue): Frame | undefined {
    for (let frame = sealed.first; frame !== undefined; frame = sealed.first) {
      // A frame without waiters holds only lines of requests that failed half-way: nobody was
      // promised anything.
      if (frame.waiters.length > 0) return frame;
      sealed.shift();
      this.#discard(frame);
    }
    return open === undefined || open.waiters.length === 0 ? undefined : open;
  }

  /** Takes out the frame that is to leave next; undefined when the queue has none. */
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
