interface RateWindowOptions {
  readonly max: number;
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

  spend(amount: number): void {
    this.#spent = this.#max - this.left + amount;
  }
}
