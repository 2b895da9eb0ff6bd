// Sends frames at the end of the event loop iteration in which their queue becomes ready. No other
// code sends a frame, so that lines can be added to it until then.

import type { NatsLink } from "../../platform/nats/link.ts";
import { AtomicBatch, fitsBatch } from "./atomic-batches.ts";
import type { Departures } from "./departures.ts";
import { isPast } from "./expiry.ts";
import type { Frame, FrameQueue } from "./frame.ts";

interface FlushesOptions {
  readonly link: Pick<NatsLink, "connected" | "onChange">;
  readonly monotonicMs: () => number;
  readonly next: Pick<NextFrames, "peek">;
  readonly sendNext: (
    queue: FrameQueue,
    monotonicMs: number,
    batch: AtomicBatch | undefined,
  ) => void;
  readonly retryAlone: (frame: Frame, monotonicMs: number) => void;
  readonly sendBatch: (batch: AtomicBatch, monotonicMs: number) => void;
}

export class Flushes {
  readonly #options: FlushesOptions;
  readonly #leaving = new Set<Departures<Frame>>();
  #isScheduled = false;
  readonly #flushNow = (): void => this.#flush();

  constructor(options: FlushesOptions) {
    this.#options = options;
    options.link.onChange((connected) => connected && this.#schedule());
  }

  markReady(queue: FrameQueue): void {
    if (this.#enqueue(queue)) this.wake(queue.departures);
  }

  wake(departures: Departures<Frame>): void {
    if (!departures.waiting) return;
    this.#leaving.add(departures);
    this.#schedule();
  }

  /** Sends frames immediately. Must not be called during a call of the intake. */
  now(departures: Departures<Frame>): void {
    if (!this.#options.link.connected) this.wake(departures);
    else if (departures.waiting) this.#flushStream(departures, this.#options.monotonicMs());
  }

  #enqueue(queue: FrameQueue): boolean {
    if (queue.ready) return true;
    if (!queue.departures.mayLeave(queue)) return false;
    queue.ready = true;
    queue.departures.push(queue);
    return true;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#leaving.size === 0 || !this.#options.link.connected) return;
    this.#isScheduled = true;
    setImmediate(this.#flushNow);
  }

  #flush(): void {
    this.#isScheduled = false;
    const monotonicMs = this.#options.monotonicMs();
    for (const departures of this.#leaving) {
      this.#flushStream(departures, monotonicMs);
      if (!this.#options.link.connected) return;
      this.#leaving.delete(departures);
    }
  }

  #flushStream(departures: Departures<Frame>, monotonicMs: number): void {
    if (this.#options.link.connected && this.#batchIsDue(departures, monotonicMs))
      this.#flushBatch(departures, monotonicMs);
    while (this.#options.link.connected) {
      const split = departures.nextOfSplit();
      if (split !== undefined) {
        this.#options.retryAlone(split, monotonicMs);
        continue;
      }
      const queue = departures.next();
      if (queue === undefined) return;
      this.#flushQueue(queue, monotonicMs, undefined);
    }
  }

  #batchIsDue(departures: Departures<Frame>, monotonicMs: number): boolean {
    if (!departures.batchIsDue) return false;
    let fitting = 0;
    let large = 0;
    for (const queue of departures.liveWaiting) {
      const frame = this.#options.next.peek(queue);
      if (frame === undefined || isPast(frame, monotonicMs)) continue;
      if (!fitsBatch(frame)) large++;
      else if (departures.isBatch(++fitting)) return true;
      if (large === departures.room) return false;
    }
    return false;
  }

  /**
   * The batch is sent before the large frames, because a queue may have an earlier frame in the
   * batch.
   */
  #flushBatch(departures: Departures<Frame>, monotonicMs: number): void {
    const batch = new AtomicBatch();
    const large: FrameQueue[] = [];
    while (!batch.isFull && large.length < departures.room) {
      const queue = departures.nextOfBatch();
      if (queue === undefined) break;
      const frame = this.#options.next.peek(queue);
      if (frame === undefined || fitsBatch(frame)) this.#flushQueue(queue, monotonicMs, batch);
      else large.push(queue);
    }
    if (batch.frames.length > 0) this.#options.sendBatch(batch, monotonicMs);
    for (const queue of large) this.#flushQueue(queue, monotonicMs, undefined);
  }

  #flushQueue(queue: FrameQueue, monotonicMs: number, batch: AtomicBatch | undefined): void {
    queue.ready = false;
    this.#options.sendNext(queue, monotonicMs, batch);
    if (queue.hasFrame) this.#enqueue(queue);
  }
}

interface NextFramesOptions {
  readonly processId: string;
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

  peek({ sealed, open }: FrameQueue): Frame | undefined {
    for (let frame = sealed.first; frame !== undefined; frame = sealed.first) {
      // If a frame has no waiters, it contains only lines of failed requests. Such lines must not
      // be stored.
      if (frame.waiters.length > 0) return frame;
      sealed.shift();
      this.#discard(frame);
    }
    return open === undefined || open.waiters.length === 0 ? undefined : open;
  }

  of(queue: FrameQueue): Frame | undefined {
    const frame = this.peek(queue);
    if (frame === undefined) return undefined;
    if (frame === queue.open) queue.open = undefined;
    else queue.sealed.shift();
    if (frame.messageId === "")
      frame.messageId = `${this.#processId}-${(++this.#lastSharedId).toString(36)}`;
    return frame;
  }
}
