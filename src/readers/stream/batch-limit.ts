// How many events a transaction may have. Where one takes the database too long, or fails again and
// again, the next ones have half as many, or the same would be tried for ever; after some that
// succeed, more again.

import { TooSlowError } from "../../platform/base/store-error.ts";

/** Transactions that succeed before the next ones may have twice as many. */
const patience = 16;
/** Transactions that fail in a row before the next ones have less. */
const failuresMin = 2;

export class BatchLimit {
  readonly #most: number;
  #now: number;
  #succeeded = 0;
  #tried = 0;
  #failed = 0;

  constructor(most: number) {
    this.#most = most;
    this.#now = most;
  }

  get events(): number {
    return this.#now;
  }

  /**
   * Writes about so many events. If that takes too long, rejects with a TooSlowError that states how
   * many of `what` the next ones have.
   */
  async within<Result>(
    events: number,
    what: string,
    write: () => Promise<Result>,
  ): Promise<Result> {
    this.#tried = events;
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof TooSlowError)) throw error;
      this.#tooSlow(events);
      const less = `at most ${this.events} events, or one message`;
      throw new TooSlowError(`${error.message}; the next ${what} have less: ${less}`, {
        cause: error,
      });
    }
  }

  #tooSlow(events: number): void {
    this.#now = Math.max(1, Math.floor(Math.min(events, this.#now) / 2));
    this.#tried = 0;
    this.#succeeded = 0;
  }

  /** The session ended. Counts only if a transaction was begun. */
  failed(): void {
    if (this.#tried > 0 && ++this.#failed >= failuresMin) this.#tooSlow(this.#tried);
    this.#tried = 0;
  }

  succeeded(): void {
    this.#tried = 0;
    this.#failed = 0;
    if (this.#now === this.#most || ++this.#succeeded < patience) return;
    this.#now = Math.min(this.#most, 2 * this.#now);
    this.#succeeded = 0;
  }
}
