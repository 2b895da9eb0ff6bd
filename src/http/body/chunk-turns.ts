// What is read of bodies in one turn of the event loop, for all connections together. uWS reads
// each connection that has something, calls back for each chunk however little is in it, and stops
// for nothing in between: megabytes that come on a thousand connections are one turn. So a turn
// that has had its share reads no other connection that is in the middle of a body; those go on in
// turn, some a turn. Where chunks are tiny, one body that goes on all the same is refused, and no
// further one begins. Knows nothing of what is read.

export interface ChunkedBody {
  /**
   * Nothing more is read of it until `resumeReading`, but what has been read from its connection
   * already.
   */
  pauseReading(): void;
  resumeReading(): void;
}

/**
 * Others wait for the next turn from here on. Usual chunks, of some kilobytes, come to a hundredth
 * of that.
 */
export const chunksPerTurn = 6_144;
/**
 * Past this, the body that still goes on is refused: alone it has had as many chunks as all bodies
 * before it in this turn.
 */
export const chunksPerTurnMax = 2 * chunksPerTurn;
/**
 * They wait too when this thread has worked so long since the first large piece of the turn: one of
 * 100 KiB takes 0.17 ms, most of it for fresh memory.
 */
export const readMsPerTurn = 6;
/**
 * So many of those that wait are read again a turn: to pause one, and to go on, takes some
 * microseconds.
 */
export const resumedPerTurnMax = 32;

export interface ChunkTurnsOptions {
  readonly nextTurn: (run: () => void) => void;
  /** Milliseconds for which this thread had a processor. */
  readonly workMs: () => number;
}

export class ChunkTurns<Body extends ChunkedBody> {
  readonly #nextTurn: (run: () => void) => void;
  readonly #workMs: () => number;
  /** Begun, and not whole; who is to be read first is first. */
  readonly #bodies = new Set<Body>();
  readonly #paused = new Set<Body>();
  /** Whole, and not read since. */
  readonly #resting = new Set<Body>();
  #spender: Body | undefined;
  #chunks = 0;
  /** When the first large piece of this turn had come, by `workMs`. */
  #sinceMs: number | undefined;
  #isTurnAwaited = false;

  constructor({ nextTurn, workMs }: ChunkTurnsOptions) {
    this.#nextTurn = nextTurn;
    this.#workMs = workMs;
  }

  /** This turn has had so many chunks that what has not begun is not to begin. */
  get isOver(): boolean {
    return this.#chunks > chunksPerTurnMax;
  }

  /** A chunk of it has come, and is not the last. */
  count(body: Body): void {
    this.#awaitTurn();
    if (++this.#chunks === chunksPerTurn) this.#pauseOthers(body);
  }

  /** A piece of it has come that is more work to read than to be called back for. */
  countLarge(body: Body): void {
    this.#awaitTurn();
    const nowMs = this.#workMs();
    this.#sinceMs ??= nowMs;
    // Behind those that have not been read this turn.
    if (this.#bodies.delete(body)) this.#bodies.add(body);
    if (nowMs - this.#sinceMs > readMsPerTurn) this.#pauseOthers(body);
  }

  /** More may come of it. */
  add(body: Body): void {
    this.#bodies.add(body);
    if (this.#spender !== undefined) this.#pause(body);
  }

  /**
   * No more comes of it. If its connection is paused, it stays so until the answer: resumed, uWS
   * would begin to count the time of a connection on which the client waits for us.
   */
  whole(body: Body): void {
    if (this.#bodies.delete(body) && this.#paused.delete(body)) this.#resting.add(body);
  }

  /** It is answered: its connection is read again. */
  answered(body: Body): void {
    this.whole(body);
    if (this.#resting.delete(body)) body.resumeReading();
  }

  /** Its connection is gone. */
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
      // Behind those that waited for it: they have the next turn without it.
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
