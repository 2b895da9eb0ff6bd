// Limits how much of one kind of work is done per turn of the event loop, for all callers together.
// The budget is full again in the next turn.

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

  /** Whether more was spent in this turn than the budget allows. */
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
