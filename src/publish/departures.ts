// Chooses the queue whose frame leaves next. Live queues go first. Bulk and history wait, so that a
// live frame never has all of their frames before it in the store: only one or two of them, or some
// small ones of each project. Must not look into frames.

import { Fifo } from "./fifo.ts";
import type { Frame, FrameQueue } from "./frame.ts";

/**
 * Another background frame leaves while fewer bytes than this of background frames are
 * unacknowledged. So two frames of large requests may be under way at a time.
 */
const backgroundBytesUnackedMax = 393_216;

/**
 * Another bulk frame of a project may leave while its unacknowledged bulk frames have fewer bytes,
 * and are fewer, than these two. Without that, requests of a few events that have frames of their
 * own would each wait for the fsync of the one before.
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

  /** Whether a frame of the queue may leave beside the queue's unacknowledged frames. */
  mayLeave(queue: FrameQueue): boolean {
    if (queue.unacked < queue.window) return true;
    // A live queue may have one frame more than its window unacknowledged while background frames
    // are under way: its frames that have left may be waiting behind one of those in the store, and
    // its next frame need not wait here for their acknowledgement too.
    if (!queue.background) return this.backgroundUnderWay && queue.unacked === queue.window;
    return (
      queue.lane === "live" &&
      queue.unackedBytes < littleBytesUnackedMax &&
      queue.unacked < littleFramesUnackedMax
    );
  }

  /**
   * Adds a queue that has a frame to send. It must not be added again until `next` has answered it.
   */
  push(queue: FrameQueue): void {
    (queue.background ? this.#background : this.#live).push(queue);
  }

  /**
   * The queue whose frame leaves next. When no background frame is under way, one goes first, so
   * that background queues get on however busy the live lane is.
   */
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
