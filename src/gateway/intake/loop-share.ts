// Limits the time per event-loop turn that scanning and placing take, for all requests together: a
// hundred bodies of one millisecond each delay the next request as long as one body of a hundred
// milliseconds. Does not depend on the bodies.

/**
 * Until a turn has spent this time, requests are processed as they arrive: under full load, one
 * read of all sockets brings as much work. It is CPU time of this thread. With wall-clock time,
 * which also counts while another process has the CPU, batches of a hundred events were sent to the
 * thread pool and cost 6 % more. An estimate from bytes and events was four times the real time for
 * usual events, and a third of it for events crafted to be slow.
 */
const atOnceMsMax = 8;
/** Waiting slices are run for this long in a turn, and at least one of them is run. */
const slicesMsMax = 0.8;
/** Less time than this is not worth waiting for the turn's end: it is added to the next turn's. */
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

  /**
   * Whether this turn has used its share. If so, all but the smallest work waits for another turn.
   */
  get isSpent(): boolean {
    return this.#spentMs > atOnceMsMax;
  }

  /** Counts time that this thread has worked in this turn on bodies that had just arrived. */
  spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs > unnoticedMsMax) this.#awaitTurn();
  }

  /**
   * Runs a slice of work in a later turn. Slices run in the order of the calls, so bodies that call
   * this repeatedly alternate. Rejects with the slice's exception.
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
