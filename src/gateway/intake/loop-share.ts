// Limits the time that scanning and placing take per event loop iteration, for all requests
// together. A hundred bodies of one millisecond each would delay the next request as long as one
// body of a hundred milliseconds. Does not depend on the bodies.

/**
 * CPU milliseconds of this thread per event loop iteration, up to which requests are processed as
 * they arrive. Under full load, one read of all sockets brings as much work. Wall-clock time also
 * counts while another process has the CPU. With it, batches of a hundred events were sent to the
 * thread pool and took 6 % more time. An estimate from bytes and events was four times the real
 * time for usual events. For events crafted to be slow it was a third of the real time.
 */
const atOnceMsMax = 8;
/**
 * Milliseconds per event loop iteration for which waiting slices are run. At least one slice is
 * run.
 */
const slicesMsMax = 0.8;
/**
 * Maximum milliseconds that are carried over to the next event loop iteration, because they are not
 * worth waiting for the end of this one.
 */
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

  /**
   * Creates a share. `nextTurn`: returns a promise that is fulfilled in a later event loop
   * iteration, so that other requests are processed first.
   */
  constructor({
    nextTurn,
    monotonicMs,
  }: { nextTurn: () => Promise<void>; monotonicMs: () => number }) {
    this.#nextTurn = nextTurn;
    this.#monotonicMs = monotonicMs;
  }

  /**
   * Whether this event loop iteration has used its share. If so, all but the smallest bodies are
   * processed later.
   */
  get isSpent(): boolean {
    return this.#spentMs > atOnceMsMax;
  }

  /**
   * Adds time that this thread has spent in this event loop iteration on bodies that had just
   * arrived.
   */
  spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs > unnoticedMsMax) this.#awaitTurn();
  }

  /**
   * Runs a slice of work in a later event loop iteration. Slices run in the order of the calls, so
   * bodies that call this repeatedly alternate. Rejects with the slice's exception.
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
