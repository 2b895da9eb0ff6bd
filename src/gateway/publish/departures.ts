// Chooses the queue whose frame leaves next for a stream. Live queues go first. Bulk and history
// wait, so that a live frame never has all of their frames before it in the store: only one or two
// of them, or some small ones of each project. Each stream has its own departures, so that one
// which acknowledges nothing holds up nobody's frames but its own. Must not look into frames.

import type { Lane } from "../../platform/base/lane.ts";
import type { Distance } from "./distance.ts";
import { Fifo } from "./fifo.ts";
import { type Batching, Together, type TogetherOptions } from "./together.ts";

/**
 * How a frame leaves. `inBatch`: in an atomic batch. `parted`: its batch was parted, and the frame
 * waits for room in the window, to leave again alone.
 */
export type Departure = "alone" | "inBatch" | "parted";

/** What is known here of a queue. */
interface Queue {
  readonly lane: Lane;
  readonly window: number;
  readonly background: boolean;
  unacked: number;
  unackedBytes: number;
}

/** What is known here of a frame of the queue. */
interface Departing {
  readonly queue: Queue;
  readonly length: number;
  departedBytes: number;
  departure: Departure;
  readonly firstSentMonotonicMs: number;
  readonly sends: number;
}

interface DeparturesOptions extends TogetherOptions {
  /** Default: the store is near. */
  readonly distance?: Pick<Distance, "isFar" | "left" | "settled"> | undefined;
}

/**
 * Another background frame leaves while fewer bytes than this of background frames are
 * unacknowledged. So two frames of large requests may be under way at a time.
 */
const backgroundBytesUnackedMax = 393_216;

/**
 * Background frames under way are little while they have fewer bytes than the first of these two.
 * Another bulk frame of a project may leave while its own are, and are fewer than the second.
 * Without that, requests of a few events that have frames of their own would each wait for the
 * fsync of the one before.
 */
const littleBytesUnackedMax = 32_768;
const littleFramesUnackedMax = 32;

/** So many frames of a parted batch leave before one of the queues'. */
const partedInARowMax = 3;

export class Departures<Leaving extends Departing> {
  readonly #framesUnackedMax: number;
  readonly #live = new Fifo<Leaving["queue"]>();
  readonly #background = new Fifo<Leaving["queue"]>();
  /** Frames of atomic batches that were parted. They leave again, alone, in this order. */
  readonly #parted = new Fifo<Leaving>();
  readonly #together: Together;
  readonly #distance: DeparturesOptions["distance"];
  /** Those that have left alone. While they fill the window, no atomic batch leaves either. */
  #framesUnacked = 0;
  #backgroundBytesUnacked = 0;
  #wasBackground = false;
  #partedInARow = 0;

  constructor(stream: Batching, { distance, ...together }: DeparturesOptions) {
    this.#framesUnackedMax = together.framesUnackedMax;
    this.#distance = distance;
    this.#together = new Together(stream, together);
  }

  /** Whether a live frame may find background ones before it in the store. */
  get backgroundUnderWay(): boolean {
    return this.#backgroundBytesUnacked > 0;
  }

  /** What counts as under way. Nothing does, once all frames are settled. */
  get underWay(): { frames: number; backgroundBytes: number; alone: number; batches: number } {
    const [frames, backgroundBytes] = [this.#framesUnacked, this.#backgroundBytesUnacked];
    return { frames, backgroundBytes, ...this.#together.underWay };
  }

  /** Whether a frame could leave now. */
  get waiting(): boolean {
    if (this.batchIsDue) return true;
    return this.room > 0 && (this.#queueMayLeave() || this.#parted.length > 0);
  }

  /**
   * Whether the next live frames leave as an atomic batch, each taken by `nextOfBatch`, if batches
   * take enough of them.
   */
  get batchIsDue(): boolean {
    return this.isBatch(this.#live.length);
  }

  /** Whether so many frames are enough for an atomic batch that leaves now. */
  isBatch(frames: number): boolean {
    return this.room > 0 && this.#together.isDue(frames);
  }

  /** How many more frames may leave alone, of which some may be those that no batch takes. */
  get room(): number {
    return this.#framesUnackedMax - this.#framesUnacked;
  }

  /** The live queues that wait, in the order in which `nextOfBatch` answers them. */
  get liveWaiting(): Iterable<Leaving["queue"]> {
    return this.#live;
  }

  /** Whether a frame of the queue may leave beside the queue's unacknowledged frames. */
  mayLeave(queue: Leaving["queue"]): boolean {
    if (queue.unacked < queue.window) return true;
    if (!queue.background) return queue.unacked === queue.window && this.#mayLeaveBeside();
    return (
      queue.lane === "live" &&
      queue.unackedBytes < littleBytesUnackedMax &&
      queue.unacked < littleFramesUnackedMax
    );
  }

  /**
   * Adds a queue that has a frame to send. It must not be added again until `next` has answered it.
   */
  push(queue: Leaving["queue"]): void {
    (queue.background ? this.#background : this.#live).push(queue);
  }

  /**
   * The queue whose frame leaves next; undefined if none may leave now. When no background frame is
   * under way, one goes first, so that background queues get on however busy the live lane is.
   * While those under way are little, live and background queues take turns: the requests of the
   * newer protocol are all background ones, and would get one frame for each acknowledgement.
   */
  next(): Leaving["queue"] | undefined {
    if (this.room === 0) return undefined;
    const liveMayLeave = this.#liveMayLeave();
    this.#wasBackground = this.#backgroundMayLeave() && this.#isBackgroundsTurn(liveMayLeave);
    if (this.#wasBackground) return this.#background.shift();
    return liveMayLeave ? this.#live.shift() : undefined;
  }

  /**
   * The frame of a parted batch that leaves next; undefined if none does now. Such frames have
   * waited longest, so several of them leave for each of the queues' frames, which go on beside.
   */
  nextParted(): Leaving | undefined {
    if (this.#parted.length === 0 || this.room === 0) return undefined;
    if (this.#partedInARow === partedInARowMax && this.#queueMayLeave()) {
      this.#partedInARow = 0;
      return undefined;
    }
    this.#partedInARow = Math.min(this.#partedInARow + 1, partedInARowMax);
    return this.#parted.shift();
  }

  /** The queue whose frame is the next in an atomic batch; undefined if no more wait. */
  nextOfBatch(): Leaving["queue"] | undefined {
    return this.#live.shift();
  }

  /**
   * Whether a live queue may have one frame more than its window unacknowledged: where its next
   * frame would wait here for what costs the store nothing. The frames that have left may be behind
   * background ones in the store, or on a long way there or back. While frames of a parted batch
   * wait to leave again, it might overtake an earlier frame of its project. It still may where they
   * pause before that, or where it was let in before the batch was parted.
   */
  #mayLeaveBeside(): boolean {
    if (this.#parted.length > 0) return false;
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

  /** The frame leaves in the atomic batch that is being filled. */
  leftInBatch(frame: Departing): void {
    frame.departure = "inBatch";
    frame.queue.unacked++;
  }

  batchLeft(): void {
    this.#together.batchLeft();
  }

  /** Nothing waits for the batch any more. `isStored`: it was acknowledged as one. */
  batchEnded(isStored: boolean): void {
    this.#together.batchEnded(isStored);
  }

  /** The frame of a batch that was parted waits for room in the window, if it does not yet. */
  parted(frame: Leaving): void {
    if (frame.departure !== "inBatch") return;
    frame.departure = "parted";
    this.#parted.push(frame);
  }

  /** The frame that `nextParted` has answered leaves again, alone. */
  leftAgain(frame: Departing): void {
    frame.departure = "alone";
    this.#framesUnacked++;
    this.#together.leftAgain();
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
