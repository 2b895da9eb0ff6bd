// Limits the amount of one kind of work per event loop iteration, for all callers together. Each
// iteration starts with the full budget.

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

  /** Whether more was spent in this event loop iteration than the budget allows. */
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
