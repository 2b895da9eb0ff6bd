// Which queue's frame leaves next. Live ones go first; bulk and history wait, so that a live
// frame has one or two of their frames before it in the store, or some small ones of each project,
// never all of them. Must not look into frames.

import { Fifo } from "./fifo.ts";
import type { Frame, FrameQueue } from "./frame.ts";

/**
 * Another background frame leaves while fewer bytes of them than this are unacknowledged: two
 * frames of large requests.
 */
const backgroundBytesUnackedMax = 393_216;

/**
 * As long as the unacknowledged bulk frames of a project are less than this, another may follow:
 * requests of a few events that have frames of their own would each wait for the fsync of the one
 * before.
 */
const littleBytesUnackedMax = 32_768;
const littleFramesUnackedMax = 32;

export class Departures {
  readonly #live = new Fifo<FrameQueue>();
  readonly #background = new Fifo<FrameQueue>();
  #backgroundBytesUnacked = 0;

  /** Whether a live frame may find background ones before it in the store. */
  get backgroundUnderWay(): boolean {
    return this.#backgroundBytesUnacked > 0;
  }

  /** Whether a frame could leave now. */
  get waiting(): boolean {
    return this.#live.length > 0 || this.#backgroundMayLeave();
  }

  /** Whether a frame of the queue may leave beside those of it that are unacknowledged. */
  mayLeave(queue: FrameQueue): boolean {
    if (queue.unacked < queue.window) return true;
    // A live frame that waits behind a background one in the store does not hold up the next as
    // well.
    if (!queue.background) return this.backgroundUnderWay && queue.unacked === queue.window;
    return (
      queue.lane === "live" &&
      queue.unackedBytes < littleBytesUnackedMax &&
      queue.unacked < littleFramesUnackedMax
    );
  }

  /** The queue has a frame to send. In it once, until it is answered by `next`. */
  push(queue: FrameQueue): void {
    (queue.background ? this.#background : this.#live).push(queue);
  }

  /** One background frame is always under way, so that it gets on however busy the live lane is. */
  next(): FrameQueue | undefined {
    const background =
      this.#backgroundMayLeave() && (this.#backgroundBytesUnacked === 0 || this.#live.length === 0);
    return background ? this.#background.shift() : this.#live.shift();
  }

  left(frame: Frame): void {
    const { queue } = frame;
    queue.unacked++;
    if (!queue.background) return;
    frame.departedBytes = frame.length;
    queue.unackedBytes += frame.length;
    this.#backgroundBytesUnacked += frame.length;
  }

  settled(frame: Frame): void {
    const { queue } = frame;
    queue.unacked--;
    if (!queue.background) return;
    queue.unackedBytes -= frame.departedBytes;
    this.#backgroundBytesUnacked -= frame.departedBytes;
  }

  #backgroundMayLeave(): boolean {
    return this.#background.length > 0 && this.#backgroundBytesUnacked < backgroundBytesUnackedMax;
  }
}
