// What chunks of bodies may take of one turn of the event loop, for all connections together. uWS
// calls back for each chunk, half a microsecond however little is in it, reads a connection that
// has much until it has no more, and stops for nothing in between. So a turn that has had its share
// reads no other connection that is in the middle of such a body, one body that goes on all the
// same is refused, and no further one begins. Knows nothing of what is in a chunk.

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
/** Nothing goes on. By then whoever does has had as many as all before. */
export const chunksPerTurnMax = 2 * chunksPerTurn;

export class ChunkTurns<Body extends ChunkedBody> {
  readonly #nextTurn: (run: () => void) => void;
  /** Begun, and not whole. */
  readonly #bodies = new Set<Body>();
  readonly #paused: Body[] = [];
  #spender: Body | undefined;
  #chunks = 0;

  constructor(nextTurn: (run: () => void) => void) {
    this.#nextTurn = nextTurn;
  }

  /** This turn has had so many that what has not begun is not to begin. */
  get isOver(): boolean {
    return this.#chunks > chunksPerTurnMax;
  }

  /** A chunk of it has come, and is not the last. */
  count(body: Body): void {
    if (this.#chunks === 0) this.#nextTurn(() => this.#turn());
    if (++this.#chunks === chunksPerTurn) this.#pauseOthers(body);
  }

  /** More may come of it. */
  add(body: Body): void {
    this.#bodies.add(body);
  }

  delete(body: Body): void {
    this.#bodies.delete(body);
  }

  #pauseOthers(body: Body): void {
    this.#spender = body;
    for (const other of this.#bodies) if (other !== body) this.#paused.push(other);
    for (const other of this.#paused) other.pauseReading();
  }

  #turn(): void {
    this.#chunks = 0;
    this.#resume(this.#paused.splice(0));
    const spender = this.#spender;
    this.#spender = undefined;
    if (spender === undefined || !this.#bodies.delete(spender)) return;
    // Behind those that waited for it: they have the next turn without it, and are before it from
    // then on.
    this.#bodies.add(spender);
    spender.pauseReading();
    this.#nextTurn(() => {
      // Else it is among those that wait for this turn's.
      if (this.#spender === undefined) this.#resume([spender]);
    });
  }

  #resume(bodies: readonly Body[]): void {
    for (const body of bodies) if (this.#bodies.has(body)) body.resumeReading();
  }
}
