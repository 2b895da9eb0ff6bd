// Chooses the queue whose frame leaves next for a stream. Live queues have priority. Bulk and
// history wait, so that a live frame follows only one or two of their frames in the store, or some
// small ones of each project. Each stream has its own departures, so a stream that acknowledges
// nothing delays only its own frames. Does not read the frames' content.

import type { Lane } from "../../platform/base/lane.ts";
import type { Distance } from "./distance.ts";
import { Fifo } from "./fifo.ts";
import { type Batching, Together, type TogetherOptions } from "./together.ts";

/**
 * How a frame leaves. `inBatch`: in an atomic batch. `split`: its batch was split, and the frame
 * waits for room in the window to be sent again, alone.
 */
export type Departure = "alone" | "inBatch" | "split";

/** The parts of a queue that are used here. */
interface Queue {
  readonly lane: Lane;
  readonly window: number;
  readonly background: boolean;
  unacked: number;
  unackedBytes: number;
}

/** The parts of a frame that are used here. */
interface Departing {
  readonly queue: Queue;
  readonly length: number;
  departedBytes: number;
  departure: Departure;
  readonly firstSentMonotonicMs: number;
  readonly sends: number;
}

interface DeparturesOptions extends TogetherOptions {
  /** Default: the store counts as near. */
  readonly distance?: Pick<Distance, "isFar" | "left" | "settled"> | undefined;
}

/**
 * Another background frame may leave while the unacknowledged background frames have fewer bytes
 * than this. So two frames of large requests may be in flight at a time.
 */
const backgroundBytesUnackedMax = 393_216;

/**
 * Background frames in flight count as few while they have fewer bytes than
 * `littleBytesUnackedMax`. Another bulk frame of a project may then leave while the project has
 * fewer than `littleFramesUnackedMax` in flight. Otherwise requests of a few events with frames of
 * their own would each wait for the fsync of the one before.
 */
const littleBytesUnackedMax = 32_768;
const littleFramesUnackedMax = 32;

/** Maximum number of frames of a split batch that leave before one of the queues' frames. */
const splitInARowMax = 3;

export class Departures<Leaving extends Departing> {
  readonly #framesUnackedMax: number;
  readonly #live = new Fifo<Leaving["queue"]>();
  readonly #background = new Fifo<Leaving["queue"]>();
  /** Frames of atomic batches that were split. They are sent again, alone, in this order. */
  readonly #ofSplit = new Fifo<Leaving>();
  readonly #together: Together;
  readonly #distance: DeparturesOptions["distance"];
  /** Frames that left alone. While they fill the window, no atomic batch leaves either. */
  #framesUnacked = 0;
  #backgroundBytesUnacked = 0;
  #wasBackground = false;
  #splitInARow = 0;

  constructor(stream: Batching, { distance, ...together }: DeparturesOptions) {
    this.#framesUnackedMax = together.framesUnackedMax;
    this.#distance = distance;
    this.#together = new Together(stream, together);
  }

  /** Whether the store may process background frames before a live frame that leaves now. */
  get backgroundUnderWay(): boolean {
    return this.#backgroundBytesUnacked > 0;
  }

  /** The counts of frames in flight. All are 0 once all frames are settled. */
  get underWay(): { frames: number; backgroundBytes: number; alone: number; batches: number } {
    const [frames, backgroundBytes] = [this.#framesUnacked, this.#backgroundBytesUnacked];
    return { frames, backgroundBytes, ...this.#together.underWay };
  }

  /** Whether a frame could leave now. */
  get waiting(): boolean {
    if (this.batchIsDue) return true;
    return this.room > 0 && (this.#queueMayLeave() || this.#ofSplit.length > 0);
  }

  /**
   * Whether the next live frames leave as an atomic batch, if enough of them fit one. Each is then
   * taken by `nextOfBatch`.
   */
  get batchIsDue(): boolean {
    return this.isBatch(this.#live.length);
  }

  /** Whether this number of frames is enough for an atomic batch that leaves now. */
  isBatch(frames: number): boolean {
    return this.room > 0 && this.#together.isDue(frames);
  }

  /** How many more frames may leave alone, including frames that are too large for a batch. */
  get room(): number {
    return this.#framesUnackedMax - this.#framesUnacked;
  }

  /** The waiting live queues, in the order in which `nextOfBatch` returns them. */
  get liveWaiting(): Iterable<Leaving["queue"]> {
    return this.#live;
  }

  /** Whether a frame of the queue may leave in addition to its unacknowledged frames. */
  mayLeave(queue: Leaving["queue"]): boolean {
    if (queue.unacked < queue.window) return true;
    if (!queue.background) return queue.unacked === queue.window && this.#mayExceedWindow();
    return (
      queue.lane === "live" &&
      queue.unackedBytes < littleBytesUnackedMax &&
      queue.unacked < littleFramesUnackedMax
    );
  }

  /**
   * Adds a queue that has a frame to send. It must not be added again until `next` has returned it.
   */
  push(queue: Leaving["queue"]): void {
    (queue.background ? this.#background : this.#live).push(queue);
  }

  /**
   * The queue whose frame leaves next; undefined if none may leave now. If no background frame is
   * in flight, a background queue goes first, so that a busy live lane cannot starve them. While
   * the background bytes in flight are few, live and background queues alternate: all requests of
   * the newer protocol are background ones, and would otherwise send one frame per acknowledgement.
   */
  next(): Leaving["queue"] | undefined {
    if (this.room === 0) return undefined;
    const liveMayLeave = this.#liveMayLeave();
    this.#wasBackground = this.#backgroundMayLeave() && this.#isBackgroundsTurn(liveMayLeave);
    if (this.#wasBackground) return this.#background.shift();
    return liveMayLeave ? this.#live.shift() : undefined;
  }

  /**
   * The frame of a split batch that leaves next; undefined if none does now. Such frames have
   * waited longest, so several of them leave for each frame of the queues.
   */
  nextOfSplit(): Leaving | undefined {
    if (this.#ofSplit.length === 0 || this.room === 0) return undefined;
    if (this.#splitInARow === splitInARowMax && this.#queueMayLeave()) {
      this.#splitInARow = 0;
      return undefined;
    }
    this.#splitInARow = Math.min(this.#splitInARow + 1, splitInARowMax);
    return this.#ofSplit.shift();
  }

  /** The queue whose frame is next in an atomic batch; undefined if none waits. */
  nextOfBatch(): Leaving["queue"] | undefined {
    return this.#live.shift();
  }

  /**
   * Whether a live queue may have one frame more than its window unacknowledged. It may if its next
   * frame would only wait here without saving the store any work: the frames in flight wait for
   * background frames in the store, or the network is slow. No queue may while frames of a split
   * batch wait to be sent again, because its frame could overtake an earlier one of its project.
   * That remains possible while those frames pause, or if the queue was admitted before the split.
   */
  #mayExceedWindow(): boolean {
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

  /** Records that the frame leaves in the atomic batch that is being filled. */
  leftInBatch(frame: Departing): void {
    frame.departure = "inBatch";
    frame.queue.unacked++;
  }

  batchLeft(): void {
    this.#together.batchLeft();
  }

  /** Records that no frame waits for the batch any more. `isStored`: it was acknowledged as one. */
  batchEnded(isStored: boolean): void {
    this.#together.batchEnded(isStored);
  }

  /** Queues the frame of a split batch until the window has room, unless it is already queued. */
  batchSplit(frame: Leaving): void {
    if (frame.departure !== "inBatch") return;
    frame.departure = "split";
    this.#ofSplit.push(frame);
  }

  /** Records that the frame that `nextOfSplit` returned is sent again, alone. */
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
