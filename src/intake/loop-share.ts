// What placing lines may take of one turn of the event loop, for all requests together: a hundred bodies of a millisecond each hold up
// a neighbour as long as one of a hundred. Work is counted, not timed. Knows nothing of bodies.

/**
 * Work is bytes: those of the lines, and for each event what its record takes beside them. A mebibyte takes some 0.7 ms.
 * Requests that are placed as they come are not held up below this: it is as much as one read of all sockets brings under full load.
 */
const atOncePerTurnMax = 33_554_432;
/** Slices that wait get so much of a turn, but at least one of them. */
const slicesPerTurnMax = 1_048_576;
/** A turn in which less was done needs no account of its own. */
const unnoticedMax = 1_048_576;

interface Slice {
  readonly run: () => number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export class LoopShare {
  readonly #nextTurn: () => Promise<void>;
  readonly #waiting: Slice[] = [];
  #spent = 0;
  #turnAwaited = false;

  /** `nextTurn`: fulfilled in a later turn of the event loop, after other work had its chance. */
  constructor(nextTurn: () => Promise<void>) {
    this.#nextTurn = nextTurn;
  }

  /** This turn has had enough: what is more than a little waits for another. */
  get isSpent(): boolean {
    return this.#spent > atOncePerTurnMax;
  }

  /** Work that was done as it came. */
  spend(work: number): void {
    this.#spent += work;
    if (this.#spent > unnoticedMax) this.#awaitTurn();
  }

  /**
   * Runs a slice of work, which answers how much it was, in a later turn. In the order of asking, so of bodies that ask again and again
   * each has its turn. Rejects with what the slice throws.
   */
  slice(run: () => number): Promise<void> {
    this.#awaitTurn();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ run, resolve, reject });
    });
  }

  #awaitTurn(): void {
    if (this.#turnAwaited) return;
    this.#turnAwaited = true;
    void this.#nextTurn().then(() => this.#turn());
  }

  #turn(): void {
    this.#turnAwaited = false;
    this.#spent = 0;
    for (let work = 0; work < slicesPerTurnMax; ) {
      const slice = this.#waiting.shift();
      if (slice === undefined) return;
      try {
        work += slice.run();
        slice.resolve();
      } catch (bug) {
        slice.reject(bug);
      }
    }
    if (this.#waiting.length > 0) this.#awaitTurn();
  }
}
