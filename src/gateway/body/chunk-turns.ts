// Limits the body data that is read per event loop iteration ("turn" below), for all connections
// together. uWS reads each connection that has data, calls back for each chunk even if it is tiny,
// and never yields in between: megabytes on a thousand connections are read in one turn. So a turn
// that has used its share pauses the other connections that are in the middle of a body; each turn
// resumes some of them. If chunks are small, a body that continues is refused, and no new body
// begins.

import { RateWindow } from "../../platform/base/rate-window.ts";

export interface ChunkedBody {
  /**
   * Stops reading the body's connection until `resumeReading`. Data that has already been read from
   * the connection still arrives.
   */
  pauseReading(): void;
  resumeReading(): void;
}

/**
 * Number of chunks in a turn after which the other bodies wait for the next turn. One read of 512
 * KiB has fewer if each chunk has a hundred bytes. With chunks of some kilobytes, which is usual, a
 * turn has a hundredth of this number.
 */
export const chunksPerTurn = 5_120;
/**
 * Number of chunks in a turn after which a body that continues is refused: at that point it alone
 * has had as many chunks as all bodies before it in the turn.
 */
export const chunksPerTurnMax = 2 * chunksPerTurn;
/**
 * Maximum number of chunks that are skipped before a refused body has its answer. If more chunks
 * must be skipped, the connection is closed instead, because nothing else stops uWS from calling
 * back for the rest of the data.
 */
export const chunksSkippedMax = chunksPerTurn;
/**
 * CPU time of this thread in milliseconds, since the first large piece of the turn, after which the
 * other bodies wait for the next turn. A piece of 100 KiB takes 0.17 ms, mostly to allocate memory.
 */
export const readMsPerTurn = 6;
/**
 * Maximum number of waiting bodies that are resumed per turn: to pause and resume a connection
 * takes some microseconds.
 */
export const resumedPerTurnMax = 32;

interface ChunkTurnsOptions {
  readonly nextTurn: (run: () => void) => void;
  /** Returns the CPU time of this thread in milliseconds. */
  readonly workMs: () => number;
}

export class ChunkTurns<Body extends ChunkedBody> {
  readonly #nextTurn: (run: () => void) => void;
  readonly #workMs: () => number;
  /** The bodies that have begun and are not complete, in the order in which they are read next. */
  readonly #bodies = new Set<Body>();
  readonly #paused = new Set<Body>();
  /** The complete bodies whose connections stay paused until the answer. */
  readonly #resting = new Set<Body>();
  #spender: Body | undefined;
  #chunks = 0;
  /** Time when the first large piece of this turn arrived, by `workMs`. */
  #sinceMs: number | undefined;
  #isTurnAwaited = false;

  constructor({ nextTurn, workMs }: ChunkTurnsOptions) {
    this.#nextTurn = nextTurn;
    this.#workMs = workMs;
  }

  /**
   * Whether this turn has had more than `chunksPerTurnMax` chunks. If so, a body that continues is
   * refused, and no further chunked body may begin.
   */
  get isOver(): boolean {
    return this.#chunks > chunksPerTurnMax;
  }

  /** Returns whether the body waits for a turn in which its connection is read. */
  isPaused(body: Body): boolean {
    return this.#paused.has(body);
  }

  /** Counts a chunk of the body other than its last. */
  count(body: Body): void {
    this.#awaitTurn();
    if (++this.#chunks === chunksPerTurn) this.#pauseOthers(body);
  }

  /** Counts a piece of the body that takes longer to read than its callback. */
  countLarge(body: Body): void {
    this.#awaitTurn();
    const nowMs = this.#workMs();
    this.#sinceMs ??= nowMs;
    // The body moves after those that have not been read in this turn.
    if (this.#bodies.delete(body)) this.#bodies.add(body);
    if (nowMs - this.#sinceMs > readMsPerTurn) this.#pauseOthers(body);
  }

  /** Adds a body that has begun and is not complete. */
  add(body: Body): void {
    this.#bodies.add(body);
    if (this.#spender !== undefined) this.#pause(body);
  }

  /**
   * Removes a complete body. If its connection is paused, it stays paused until the answer: if it
   * were resumed, uWS would start its timeout on a client that waits for the server.
   */
  whole(body: Body): void {
    if (this.#bodies.delete(body) && this.#paused.delete(body)) this.#resting.add(body);
  }

  /** Removes the body of an answered request, and resumes its connection if it is paused. */
  answered(body: Body): void {
    this.whole(body);
    if (this.#resting.delete(body)) body.resumeReading();
  }

  /** Removes a body whose connection is closed, so that the connection is not resumed. */
  gone(body: Body): void {
    this.whole(body);
    this.#resting.delete(body);
  }

  #pauseOthers(body: Body): void {
    if (this.#spender !== undefined) return;
    this.#spender = body;
    for (const other of this.#bodies) if (other !== body) this.#pause(other);
  }

  #pause(body: Body): void {
    if (this.#paused.has(body)) return;
    this.#paused.add(body);
    body.pauseReading();
  }

  #awaitTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    this.#nextTurn(() => this.#turn());
  }

  #turn(): void {
    this.#isTurnAwaited = false;
    this.#chunks = 0;
    this.#sinceMs = undefined;
    const spender = this.#spender;
    this.#spender = undefined;
    this.#resumeFirst();
    if (spender !== undefined && this.#bodies.delete(spender)) {
      // The body that used up the turn moves after those that waited for it. They have the next
      // turn without it.
      this.#bodies.add(spender);
      this.#pause(spender);
    }
    if (this.#paused.size > 0) this.#awaitTurn();
  }

  #resumeFirst(): void {
    if (this.#paused.size === 0) return;
    let left = resumedPerTurnMax;
    for (const body of this.#bodies) {
      if (!this.#paused.delete(body)) continue;
      body.resumeReading();
      if (--left === 0) return;
    }
  }
}

/**
 * Maximum rejections per address and second. After that, no chunked body of the address is read.
 */
const rejectedPerSecondMax = 4;
/** Maximum number of addresses. The address with the oldest latest rejection is dropped first. */
const addressesMax = 4_096;

/**
 * Tracks the addresses that recently sent bodies in too small chunks. Such a body takes tens of
 * milliseconds before it can be rejected. So an address gets a few rejections per second; after
 * that, its connections are closed at the head of the next chunked body.
 */
export class ChunkSenders {
  readonly #monotonicMs: () => number;
  /** Rejections of each address in the current second. The address rejected last is at the end. */
  readonly #rejections = new Map<string, RateWindow>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Counts a rejected body of the address. */
  reject(address: string): void {
    const rejections =
      this.#rejections.get(address) ??
      new RateWindow({ max: rejectedPerSecondMax, monotonicMs: this.#monotonicMs });
    rejections.spend(1);
    this.#rejections.delete(address);
    this.#rejections.set(address, rejections);
    if (this.#rejections.size > addressesMax)
      this.#rejections.delete(this.#rejections.keys().next().value!);
  }

  /** Returns whether chunked bodies of the address are not read for the rest of this second. */
  isBarred(address: string): boolean {
    const rejections = this.#rejections.get(address);
    if (rejections === undefined) return false;
    if (rejections.left === rejectedPerSecondMax) this.#rejections.delete(address);
    return rejections.isSpent;
  }
}
