// What scanning and placing may take of one turn of the event loop, for all requests together: a
// hundred bodies of a millisecond each hold up a neighbour as long as one of a hundred. Knows
// nothing of bodies.

/**
 * Below this, requests are placed as they come: a read of all sockets brings as much under full
 * load. It is time for which this thread had a processor. By a clock, which goes on while another
 * process has it, batches of a hundred went to the thread pool and cost 6 % more. Reckoned from
 * bytes and events, usual events counted four times what they take, and made ones a third of it.
 */
const atOnceMsMax = 8;
/** Slices that wait get so much of a turn, but at least one of them. */
const slicesMsMax = 0.8;
/** A turn in which less was done needs no account of its own. */
const unnoticedMsMax = 0.5;

interface Slice {
  readonly run: () => void;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export class LoopShare {
  readonly #nextTurn: () => Promise<void>;
  readonly #monotonicMs: () => number;
  readonly #waiting: Slice[] = [];
  #spentMs = 0;
  #turnAwaited = false;

  /** `nextTurn`: fulfilled in a later turn of the event loop, after other work had its chance. */
  constructor({
    nextTurn,
    monotonicMs,
  }: { nextTurn: () => Promise<void>; monotonicMs: () => number }) {
    this.#nextTurn = nextTurn;
    this.#monotonicMs = monotonicMs;
  }

  /** This turn has done its share: a body of more than a little work waits for another. */
  get isSpent(): boolean {
    return this.#spentMs > atOnceMsMax;
  }

  /** Counts the time that this thread has worked on what had just come. */
  spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs > unnoticedMsMax) this.#awaitTurn();
  }

  /**
   * Runs a slice of work in a later turn. In the order of asking, so of bodies that ask again and
   * again each has its turn. Rejects with what the slice throws.
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
    this.#spentMs = 0;
    const endMs = this.#monotonicMs() + slicesMsMax;
    do {
      const slice = this.#waiting.shift();
      if (slice === undefined) return;
      try {
        slice.run();
        slice.resolve();
      } catch (bug) {
        slice.reject(bug);
      }
    } while (this.#monotonicMs() < endMs);
    if (this.#waiting.length > 0) this.#awaitTurn();
  }
}
