// Chooses the queue whose frame leaves next for a stream. Live queues go first. Bulk and history
// wait, so that a live frame never has all of their frames before it in the store: only one or two
// of them, or some small ones of each project. Each stream has its own departures, so that one
// which acknowledges nothing holds up nobody's frames but its own. Must not look into frames.

import type { Lane } from "../base/types.ts";
import type { Distance } from "./distance.ts";
import { Fifo } from "./fifo.ts";
import { type Batching, Together, type TogetherOptions } from "./together.ts";

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
  /** Whether the frame leaves in an atomic batch. */
  together: boolean;
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

export class Departures<Waiting extends Queue> {
  readonly #framesUnackedMax: number;
  readonly #live = new Fifo<Waiting>();
  readonly #background = new Fifo<Waiting>();
  readonly #together: Together;
  readonly #distance: DeparturesOptions["distance"];
  /** But for those in atomic batches, which leave only while these have room in the window. */
  #framesUnacked = 0;
  #backgroundBytesUnacked = 0;
  #wasBackground = false;

  constructor(stream: Batching, { distance, ...together }: DeparturesOptions) {
    this.#framesUnackedMax = together.framesUnackedMax;
    this.#distance = distance;
    this.#together = new Together(stream, together);
  }

  /** Whether a live frame may find background ones before it in the store. */
  get backgroundUnderWay(): boolean {
    return this.#backgroundBytesUnacked > 0;
  }

  /** Whether a frame could leave now. */
  get waiting(): boolean {
    if (this.batchIsDue) return true;
    const hasQueue = this.#liveMayLeave() || this.#backgroundMayLeave();
    return hasQueue && this.room > 0;
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
    return Math.max(0, this.#framesUnackedMax - this.#framesUnacked);
  }

  /** The live queues that wait, in the order in which `nextOfBatch` answers them. */
  get liveWaiting(): Iterable<Waiting> {
    return this.#live;
  }

  /** Whether a frame of the queue may leave beside the queue's unacknowledged frames. */
  mayLeave(queue: Waiting): boolean {
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
  push(queue: Waiting): void {
    (queue.background ? this.#background : this.#live).push(queue);
  }

  /**
   * The queue whose frame leaves next; undefined if none may leave now. When no background frame is
   * under way, one goes first, so that background queues get on however busy the live lane is.
   * While those under way are little, live and background queues take turns: the requests of the
   * newer protocol are all background ones, and would get one frame for each acknowledgement.
   */
  next(): Waiting | undefined {
    if (this.room === 0) return undefined;
    const liveMayLeave = this.#liveMayLeave();
    this.#wasBackground = this.#backgroundMayLeave() && this.#isBackgroundsTurn(liveMayLeave);
    if (this.#wasBackground) return this.#background.shift();
    return liveMayLeave ? this.#live.shift() : undefined;
  }

  /** The queue whose frame is the next in an atomic batch; undefined if no more wait. */
  nextOfBatch(): Waiting | undefined {
    return this.#live.shift();
  }

  /**
   * Whether a live queue may have one frame more than its window unacknowledged: where its next
   * frame would wait here for what costs the store nothing. The frames that have left may be behind
   * background ones in the store, or on a long way there or back.
   */
  #mayLeaveBeside(): boolean {
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
    if (frame.together) return;
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
    frame.together = true;
    frame.queue.unacked++;
  }

  batchLeft(): void {
    this.#together.batchLeft();
  }

  /** Nothing waits for the batch any more. `isStored`: it was acknowledged as one. */
  batchEnded(isStored: boolean): void {
    this.#together.batchEnded(isStored);
  }

  /**
   * The frame, which left in an atomic batch, counts from now on as one that has left alone. The
   * window may then hold more than it takes, and lets no other frame leave until it
   * has room.
   */
  parted(frame: Departing): void {
    frame.together = false;
    this.#framesUnacked++;
    this.#together.parted();
  }

  #liveMayLeave(): boolean {
    return this.#live.length > 0 && !this.#together.holds;
  }

  #backgroundMayLeave(): boolean {
    return this.#background.length > 0 && this.#backgroundBytesUnacked < backgroundBytesUnackedMax;
  }
}
