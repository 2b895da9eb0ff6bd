// Lets a limited amount of something through in each window of time. The next window begins, with
// the whole amount, when it is first asked for after the old one has ended.

interface RateWindowOptions {
  readonly max: number;
  /** Default: a second. */
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

  /** How much this window still lets through; 0 or less when it is spent. */
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

  /** Spends an amount of this window, even if less is left. */
  spend(amount: number): void {
    this.#spent = this.#max - this.left + amount;
  }
}
