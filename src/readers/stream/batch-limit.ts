// Adapts the number of events of a transaction. A transaction that is too slow or fails repeatedly
// would be retried for ever, so the limit is halved. After 16 successes, it is doubled.

import { TooSlowError } from "../../platform/base/store-error.ts";

const patience = 16;
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

  /** Rejects with a TooSlowError if the write is too slow. `what` names the next transactions. */
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
      throw new TooSlowError(`${error.message}; the next ${what} are smaller: ${less}`, {
        cause: error,
      });
    }
  }

  #tooSlow(events: number): void {
    this.#now = Math.max(1, Math.floor(Math.min(events, this.#now) / 2));
    this.#tried = 0;
    this.#succeeded = 0;
  }

  /** Counts only if a transaction was begun. */
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
