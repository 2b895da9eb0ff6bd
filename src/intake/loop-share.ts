// What scanning and placing may take of one turn of the event loop, for all requests together: a hundred bodies of a millisecond each
// hold up a neighbour as long as one of a hundred. Knows nothing of bodies.

/**
 * Requests that are placed as they come are not held up below this: a read of all sockets brings as much under full load. Counted in work,
 * as `workOf` does, and not by the clock, which goes on while the processor is another process's: then batches of a hundred, of which a turn
 * has few, went to the thread pool and cost 6 % more. Reckoned, where all of it is what takes longest, 17 ms.
 */
const atOnceMax = 23_068_672;
/** Slices that wait get so much of a turn, but at least one of them. */
const slicesMsMax = 0.8;
/** A turn in which less was done needs no account of its own. */
const unnoticedMax = 524_288;

interface Slice {
  readonly run: () => void;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export class LoopShare {
  readonly #nextTurn: () => Promise<void>;
  readonly #nowMs: () => number;
  readonly #waiting: Slice[] = [];
  #spent = 0;
  #turnAwaited = false;

  /** `nextTurn`: fulfilled in a later turn of the event loop, after other work had its chance. */
  constructor({ nextTurn, nowMs }: { nextTurn: () => Promise<void>; nowMs: () => number }) {
    this.#nextTurn = nextTurn;
    this.#nowMs = nowMs;
  }

  /** This turn has had enough: what is more than a little waits for another. */
  get isSpent(): boolean {
    return this.#spent > atOnceMax;
  }

  /** So much work, as `workOf` counts, is done on what has just come. */
  spend(work: number): void {
    this.#spent += work;
    if (this.#spent > unnoticedMax) this.#awaitTurn();
  }

  /**
   * Runs a slice of work in a later turn. In the order of asking, so of bodies that ask again and again each has its turn. Rejects with
   * what the slice throws.
   */
  slice(run: () => void): Promise<void> {
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
    const endMs = this.#nowMs() + slicesMsMax;
    do {
      const slice = this.#waiting.shift();
      if (slice === undefined) return;
      try {
        slice.run();
        slice.resolve();
      } catch (bug) {
        slice.reject(bug);
      }
    } while (this.#nowMs() < endMs);
    if (this.#waiting.length > 0) this.#awaitTurn();
  }
}
