// How many events a transaction may have. Where one takes the database too long, the next ones have
// half as many, or the same would be tried for ever; after some that succeed, more again.

/** Transactions that succeed before the next ones may have twice as many. */
const patience = 16;

export class BatchLimit {
  readonly #most: number;
  #now: number;
  #succeeded = 0;

  constructor(most: number) {
    this.#most = most;
    this.#now = most;
  }

  get events(): number {
    return this.#now;
  }

  /** One of so many events took too long. */
  tooSlow(events: number): void {
    this.#now = Math.max(1, Math.floor(Math.min(events, this.#now) / 2));
    this.#succeeded = 0;
  }

  succeeded(): void {
    if (this.#now === this.#most || ++this.#succeeded < patience) return;
    this.#now = Math.min(this.#most, 2 * this.#now);
    this.#succeeded = 0;
  }
}
