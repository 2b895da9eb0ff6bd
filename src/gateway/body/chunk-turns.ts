// Bounds what is read of bodies in one turn of the event loop, for all connections together. uWS
// reads each connection that has something, calls back for each chunk however little is in it, and
// stops for nothing in between: megabytes on a thousand connections are one turn. So a turn that
// has had its share pauses the other connections that are in the middle of a body; each turn
// resumes some of them. Where chunks are small, a body that goes on is refused, and none begins.

import { RateWindow } from "../../platform/base/rate-window.ts";

export interface ChunkedBody {
  /**
   * Stops reading the body's connection until `resumeReading`. What has already been read from the
   * connection still comes.
   */
  pauseReading(): void;
  resumeReading(): void;
}

/**
 * When a turn has had so many chunks, the other bodies wait for the next turn. One read of 512 KiB
 * has fewer if its chunks have a hundred bytes each. Chunks of the usual size, some kilobytes, come
 * to a hundredth of this number in a turn.
 */
export const chunksPerTurn = 5_120;
/**
 * Past this, the body that still goes on is refused: alone it has had as many chunks as all bodies
 * before it in this turn.
 */
export const chunksPerTurnMax = 2 * chunksPerTurn;
/**
 * A refused body has its answer once what was read is passed over. If more chunks than this are
 * still to pass, its connection is closed instead: nothing else keeps uWS from calling back for the
 * rest of what it has read.
 */
export const chunksPassedOverMax = chunksPerTurn;
/**
 * The other bodies also wait when this thread has worked for so long since the first large piece of
 * the turn: a piece of 100 KiB takes 0.17 ms, most of it for fresh memory.
 */
export const readMsPerTurn = 6;
/**
 * So many of the waiting bodies are read again each turn: to pause a connection and to resume it
 * takes some microseconds.
 */
export const resumedPerTurnMax = 32;

interface ChunkTurnsOptions {
  readonly nextTurn: (run: () => void) => void;
  /** Milliseconds for which this thread had a processor. */
  readonly workMs: () => number;
}

export class ChunkTurns<Body extends ChunkedBody> {
  readonly #nextTurn: (run: () => void) => void;
  readonly #workMs: () => number;
  /**
   * The bodies that have begun and are not whole. The body that is to be read first stands first.
   */
  readonly #bodies = new Set<Body>();
  readonly #paused = new Set<Body>();
  /** The whole bodies whose connections are still paused, until the answer. */
  readonly #resting = new Set<Body>();
  #spender: Body | undefined;
  #chunks = 0;
  /** When the first large piece of this turn came, by `workMs`. */
  #sinceMs: number | undefined;
  #isTurnAwaited = false;

  constructor({ nextTurn, workMs }: ChunkTurnsOptions) {
    this.#nextTurn = nextTurn;
    this.#workMs = workMs;
  }

  /**
   * This turn has had more than `chunksPerTurnMax` chunks: a body that goes on is refused, and no
   * further chunked body may begin.
   */
  get isOver(): boolean {
    return this.#chunks > chunksPerTurnMax;
  }

  /** The body waits for a turn in which its connection is read. */
  isPaused(body: Body): boolean {
    return this.#paused.has(body);
  }

  /** Counts a chunk of the body that is not its last. */
  count(body: Body): void {
    this.#awaitTurn();
    if (++this.#chunks === chunksPerTurn) this.#pauseOthers(body);
  }

  /** Counts a piece of the body that is more work to read than its callback. */
  countLarge(body: Body): void {
    this.#awaitTurn();
    const nowMs = this.#workMs();
    this.#sinceMs ??= nowMs;
    // The body goes behind those that have not been read this turn.
    if (this.#bodies.delete(body)) this.#bodies.add(body);
    if (nowMs - this.#sinceMs > readMsPerTurn) this.#pauseOthers(body);
  }

  /** The body has begun, and more of it may come. */
  add(body: Body): void {
    this.#bodies.add(body);
    if (this.#spender !== undefined) this.#pause(body);
  }

  /**
   * The body is whole. If its connection is paused, that stays paused until the answer: if it were
   * resumed, uWS would begin its timeout on a client that waits for us.
   */
  whole(body: Body): void {
    if (this.#bodies.delete(body) && this.#paused.delete(body)) this.#resting.add(body);
  }

  /** The request is answered: if its connection is still paused, it is read again. */
  answered(body: Body): void {
    this.whole(body);
    if (this.#resting.delete(body)) body.resumeReading();
  }

  /** The body's connection is gone, and is not resumed any more. */
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
      // The body that spent the turn goes behind those that waited for it: they have the next turn
      // without it.
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
 * So many times a second an address is told that its chunks are too small. For the rest of that
 * second it may send no chunked body.
 */
const toldPerSecondMax = 4;
/**
 * So many addresses are remembered at most. Past that, the one that was last told longest ago is
 * forgotten.
 */
const addressesMax = 4_096;

/**
 * Remembers which addresses lately sent bodies in too small chunks. What has been read of such a
 * body costs tens of milliseconds before it can be refused. So an address is told a few times a
 * second; after that, its connections end at the head of the next chunked body.
 */
export class ChunkSenders {
  readonly #monotonicMs: () => number;
  /** How often each address was told in this second. The address that was told last stands last. */
  readonly #told = new Map<string, RateWindow>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Notes that the address is told once more that its chunks are too small. */
  tell(address: string): void {
    const told =
      this.#told.get(address) ??
      new RateWindow({ max: toldPerSecondMax, monotonicMs: this.#monotonicMs });
    told.spend(1);
    this.#told.delete(address);
    this.#told.set(address, told);
    if (this.#told.size > addressesMax) this.#told.delete(this.#told.keys().next().value!);
  }

  /**
   * The address has been told as often as it may be in this second: no chunked body of it is read.
   */
  isBarred(address: string): boolean {
    const told = this.#told.get(address);
    if (told === undefined) return false;
    if (told.left === toldPerSecondMax) this.#told.delete(address);
    return told.isSpent;
  }
}
