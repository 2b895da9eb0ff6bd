// Limits how much of bodies is read in one turn of the event loop, for all connections together.
// uWS reads each connection that has data, calls back for each chunk even if it is tiny, and never
// yields in between: megabytes on a thousand connections are one turn. So a turn that has used its
// share pauses the other connections that are in the middle of a body; each turn resumes some of
// them. If chunks are small, a body that continues is refused, and no new one begins.

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
 * KiB has fewer if its chunks have a hundred bytes each. With chunks of the usual size, some
 * kilobytes, a turn has a hundredth of this number.
 */
export const chunksPerTurn = 5_120;
/**
 * Number of chunks in a turn after which a body that continues is refused: alone it has had as many
 * chunks as all bodies before it in this turn.
 */
export const chunksPerTurnMax = 2 * chunksPerTurn;
/**
 * A refused body has its answer once the data already read is skipped. If more chunks than this
 * have to be skipped, its connection is closed instead: nothing else keeps uWS from calling back
 * for the rest of the data.
 */
export const chunksSkippedMax = chunksPerTurn;
/**
 * The other bodies also wait when this thread has worked for this long since the first large piece
 * of the turn: a piece of 100 KiB takes 0.17 ms, mostly to allocate memory.
 */
export const readMsPerTurn = 6;
/**
 * Number of waiting bodies that are resumed per turn: pausing and resuming a connection takes some
 * microseconds.
 */
export const resumedPerTurnMax = 32;

interface ChunkTurnsOptions {
  readonly nextTurn: (run: () => void) => void;
  /** CPU time of this thread in milliseconds. */
  readonly workMs: () => number;
}

export class ChunkTurns<Body extends ChunkedBody> {
  readonly #nextTurn: (run: () => void) => void;
  readonly #workMs: () => number;
  /** The bodies that have begun and are not complete, the next one to read first. */
  readonly #bodies = new Set<Body>();
  readonly #paused = new Set<Body>();
  /** The complete bodies whose connections are still paused, until the answer. */
  readonly #resting = new Set<Body>();
  #spender: Body | undefined;
  #chunks = 0;
  /** When the first large piece of this turn arrived, by `workMs`. */
  #sinceMs: number | undefined;
  #isTurnAwaited = false;

  constructor({ nextTurn, workMs }: ChunkTurnsOptions) {
    this.#nextTurn = nextTurn;
    this.#workMs = workMs;
  }

  /**
   * This turn has had more than `chunksPerTurnMax` chunks: a body that continues is refused, and no
   * further chunked body may begin.
   */
  get isOver(): boolean {
    return this.#chunks > chunksPerTurnMax;
  }

  /** Whether the body waits for a turn in which its connection is read. */
  isPaused(body: Body): boolean {
    return this.#paused.has(body);
  }

  /** Counts a chunk of the body other than its last. */
  count(body: Body): void {
    this.#awaitTurn();
    if (++this.#chunks === chunksPerTurn) this.#pauseOthers(body);
  }

  /** Counts a piece of the body that is more work to read than its callback. */
  countLarge(body: Body): void {
    this.#awaitTurn();
    const nowMs = this.#workMs();
    this.#sinceMs ??= nowMs;
    // The body moves behind those that have not been read this turn.
    if (this.#bodies.delete(body)) this.#bodies.add(body);
    if (nowMs - this.#sinceMs > readMsPerTurn) this.#pauseOthers(body);
  }

  /** Called when the body has begun, and is not complete. */
  add(body: Body): void {
    this.#bodies.add(body);
    if (this.#spender !== undefined) this.#pause(body);
  }

  /**
   * Called when the body is complete. If its connection is paused, it stays paused until the
   * answer: resumed, uWS would start its timeout on a client that waits for us.
   */
  whole(body: Body): void {
    if (this.#bodies.delete(body) && this.#paused.delete(body)) this.#resting.add(body);
  }

  /** Called when the request is answered: a paused connection is resumed. */
  answered(body: Body): void {
    this.whole(body);
    if (this.#resting.delete(body)) body.resumeReading();
  }

  /** Called when the body's connection is closed, so that it is not resumed any more. */
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
      // The body that used up the turn moves behind those that waited for it: they have the next
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

/** Maximum rejections per address and second. After that, its chunked bodies are not read. */
const rejectedPerSecondMax = 4;
/** Maximum number of addresses. The one rejected longest ago is dropped first. */
const addressesMax = 4_096;

/**
 * The addresses that recently sent bodies in too small chunks. Such a body costs tens of
 * milliseconds before it can be rejected. So an address gets a few rejections per second; after
 * that, its connections are closed at the head of the next chunked body.
 */
export class ChunkSenders {
  readonly #monotonicMs: () => number;
  /** Rejections of each address in this second, the latest address last. */
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

  /** Whether no chunked body of the address is read for the rest of this second. */
  isBarred(address: string): boolean {
    const rejections = this.#rejections.get(address);
    if (rejections === undefined) return false;
    if (rejections.left === rejectedPerSecondMax) this.#rejections.delete(address);
    return rejections.isSpent;
  }
}
