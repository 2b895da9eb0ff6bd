// Lets so much of something through in a window of time. The next window begins, with the whole
// amount, at the first question after the old one has ended.

export interface RateWindowOptions {
  readonly max: number;
  /** A second unless given. */
  readonly windowMs?: number;
  readonly monotonicMs: () => number;
}

export class RateWindow {
  readonly #max: number;
  readonly #windowMs: number;
  readonly #monotonicMs: () => number;
  #startMs = Number.NEGATIVE_INFINITY;
  #spent = 0;

  constructor({ max, windowMs = 1_000, monotonicMs }: RateWindowOptions) {
    this.#max = max;
    this.#windowMs = windowMs;
    this.#monotonicMs = monotonicMs;
  }

  /** What this window still lets through; 0 or less when it is spent. */
  get left(): number {
    const now = this.#monotonicMs();
    if (now - this.#startMs >= this.#windowMs) {
      this.#startMs = now;
      this.#spent = 0;
    }
    return this.#max - this.#spent;
  }

  get isSpent(): boolean {
    return this.left <= 0;
  }

  /** Spends an amount of this window, also where it has less. */
  spend(amount: number): void {
    this.#spent = this.#max - this.left + amount;
  }
}
