// Chooses the queue that sends the next frame to a stream. Live queues have priority. The number of
// bulk and historical frames in flight is limited, so that a live frame must wait for only a few of
// them.

import type { Lane } from "../../platform/base/lane.ts";
import type { Distance } from "./distance.ts";
import { Fifo } from "./fifo.ts";
import { type Batching, Together, type TogetherOptions } from "./together.ts";

export type Departure = "alone" | "inBatch" | "split";

interface Queue {
  readonly lane: Lane;
  readonly background: boolean;
  unacked: number;
  unackedBytes: number;
}

interface Departing {
  readonly queue: Queue;
  readonly length: number;
  departedBytes: number;
  departure: Departure;
  readonly firstSentMonotonicMs: number;
  readonly sends: number;
}

interface DeparturesOptions extends TogetherOptions {
  readonly distance?: Pick<Distance, "isFar" | "left" | "settled"> | undefined;
}

/** Another background frame may be sent while fewer bytes than this are unacknowledged. */
const backgroundBytesUnackedMax = 393_216;

/**
 * A bulk frame may be sent while its project has fewer unacknowledged bulk bytes than this.
 * Otherwise, a small request with its own frames would always wait for the fsync of the previous
 * one.
 */
const littleBytesUnackedMax = 32_768;
const littleFramesUnackedMax = 32;

const splitInARowMax = 3;

export class Departures<Leaving extends Departing> {
  readonly #framesUnackedMax: number;
  readonly #live = new Fifo<Leaving["queue"]>();
  readonly #background = new Fifo<Leaving["queue"]>();
  readonly #ofSplit = new Fifo<Leaving>();
  readonly #together: Together;
  readonly #distance: DeparturesOptions["distance"];
  /** The number of frames that were sent alone. While they fill the window, no batch is sent. */
  #framesUnacked = 0;
  #backgroundBytesUnacked = 0;
  #wasBackground = false;
  #splitInARow = 0;

  constructor(stream: Batching, { distance, ...together }: DeparturesOptions) {
    this.#framesUnackedMax = together.framesUnackedMax;
    this.#distance = distance;
    this.#together = new Together(stream, together);
  }

  get backgroundUnderWay(): boolean {
    return this.#backgroundBytesUnacked > 0;
  }

  get underWay(): { frames: number; backgroundBytes: number; alone: number; batches: number } {
    const [frames, backgroundBytes] = [this.#framesUnacked, this.#backgroundBytesUnacked];
    return { frames, backgroundBytes, ...this.#together.underWay };
  }

  get waiting(): boolean {
    if (this.batchIsDue) return true;
    return this.room > 0 && (this.#queueMayLeave() || this.#ofSplit.length > 0);
  }

  get batchIsDue(): boolean {
    return this.isBatch(this.#live.length);
  }

  isBatch(frames: number): boolean {
    return this.room > 0 && this.#together.isDue(frames);
  }

  get room(): number {
    return this.#framesUnackedMax - this.#framesUnacked;
  }

  get liveWaiting(): Iterable<Leaving["queue"]> {
    return this.#live;
  }

  /**
   * A queue of historical events has one frame in flight, which preserves their order. A live queue
   * usually has one too: in a test, more frames gave fewer events per second and twice as many
   * fsyncs.
   */
  mayLeave(queue: Leaving["queue"]): boolean {
    if (queue.unacked === 0) return true;
    if (!queue.background) return queue.unacked === 1 && this.#maySendSecond();
    return (
      queue.lane === "live" &&
      queue.unackedBytes < littleBytesUnackedMax &&
      queue.unacked < littleFramesUnackedMax
    );
  }

  push(queue: Leaving["queue"]): void {
    (queue.background ? this.#background : this.#live).push(queue);
  }

  /**
   * If no background frame is in flight, a background queue is next. Otherwise, live frames could
   * delay it forever.
   */
  next(): Leaving["queue"] | undefined {
    if (this.room === 0) return undefined;
    const liveMayLeave = this.#liveMayLeave();
    this.#wasBackground = this.#backgroundMayLeave() && this.#isBackgroundsTurn(liveMayLeave);
    if (this.#wasBackground) return this.#background.shift();
    return liveMayLeave ? this.#live.shift() : undefined;
  }

  nextOfSplit(): Leaving | undefined {
    if (this.#ofSplit.length === 0 || this.room === 0) return undefined;
    if (this.#splitInARow === splitInARowMax && this.#queueMayLeave()) {
      this.#splitInARow = 0;
      return undefined;
    }
    this.#splitInARow = Math.min(this.#splitInARow + 1, splitInARowMax);
    return this.#ofSplit.shift();
  }

  nextOfBatch(): Leaving["queue"] | undefined {
    return this.#live.shift();
  }

  /**
   * Returns whether a second frame may be sent before the first one is acknowledged. This is useful
   * if the queue waits for background frames anyway, or if the network is slow. While a split batch
   * is being sent again, it returns false, because the second frame must not overtake the frames of
   * the batch.
   */
  #maySendSecond(): boolean {
    if (this.#ofSplit.length > 0) return false;
    return this.backgroundUnderWay || this.#distance?.isFar === true;
  }

  #isBackgroundsTurn(liveMayLeave: boolean): boolean {
    if (this.#backgroundBytesUnacked === 0 || !liveMayLeave) return true;
    return this.#backgroundBytesUnacked < littleBytesUnackedMax && !this.#wasBackground;
  }

  left(frame: Departing): void {
    const { queue } = frame;
    queue.unacked++;
    this.#framesUnacked++;
    if (!queue.background) {
      this.#distance?.left();
      this.#together.leftAlone();
      return;
    }
    frame.departedBytes = frame.length;
    queue.unackedBytes += frame.length;
    this.#backgroundBytesUnacked += frame.length;
  }

  settled(frame: Departing): void {
    const { queue } = frame;
    queue.unacked--;
    if (frame.departure !== "alone") return;
    this.#framesUnacked--;
    if (!queue.background) {
      this.#distance?.settled(frame);
      this.#together.settledAlone();
      return;
    }
    queue.unackedBytes -= frame.departedBytes;
    this.#backgroundBytesUnacked -= frame.departedBytes;
  }

  leftInBatch(frame: Departing): void {
    frame.departure = "inBatch";
    frame.queue.unacked++;
  }

  batchLeft(): void {
    this.#together.batchLeft();
  }

  batchEnded(isStored: boolean): void {
    this.#together.batchEnded(isStored);
  }

  batchSplit(frame: Leaving): void {
    if (frame.departure !== "inBatch") return;
    frame.departure = "split";
    this.#ofSplit.push(frame);
  }

  retriedAlone(frame: Departing): void {
    frame.departure = "alone";
    this.#framesUnacked++;
    this.#together.retriedAlone();
  }

  #queueMayLeave(): boolean {
    return this.#liveMayLeave() || this.#backgroundMayLeave();
  }

  #liveMayLeave(): boolean {
    return this.#live.length > 0 && !this.#together.holdsLiveFrames;
  }

  #backgroundMayLeave(): boolean {
    return this.#background.length > 0 && this.#backgroundBytesUnacked < backgroundBytesUnackedMax;
  }
}
