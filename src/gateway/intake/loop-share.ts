// Limits the time that all requests spend on scanning and writing lines per event loop iteration.

const atOnceMsMax = 8;
const slicesMsMax = 0.8;
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

  constructor({
    nextTurn,
    monotonicMs,
  }: { nextTurn: () => Promise<void>; monotonicMs: () => number }) {
    this.#nextTurn = nextTurn;
    this.#monotonicMs = monotonicMs;
  }

  get isSpent(): boolean {
    return this.#spentMs > atOnceMsMax;
  }

  spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs > unnoticedMsMax) this.#awaitTurn();
  }

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
