// Limits one kind of work per event loop iteration, for all callers together.

export class TurnBudget {
  readonly #max: number;
  #left: number;
  #isRefilling = false;

  constructor(max: number) {
    this.#max = max;
    this.#left = max;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** Whether this iteration has spent more than the budget. */
  get isOverspent(): boolean {
    return this.#left < 0;
  }

  spend(amount: number): void {
    this.#left -= amount;
    if (this.#isRefilling) return;
    this.#isRefilling = true;
    setImmediate(() => {
      this.#isRefilling = false;
      this.#left = this.#max;
    });
  }
}
