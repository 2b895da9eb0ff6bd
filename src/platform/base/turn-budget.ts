// Budgets of work per event loop iteration, for all callers together, and a clock of the work done.

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

interface WorkClockOptions {
  /** Returns the CPU time of this thread in milliseconds. Each call is a system call. */
  readonly cpuMs: () => number;
  readonly monotonicMs: () => number;
}

/**
 * Minimum interval between two reads of the CPU time. Between them the thread counts as working, so
 * the clock may be fast by this interval.
 */
const askedEveryMs = 0.25;

/**
 * Returns a monotonic clock of the work of this thread in milliseconds, for budgets of an event
 * loop iteration. A system call takes up to 0.8 µs, so it makes few of them.
 */
export function workClock({ cpuMs, monotonicMs }: WorkClockOptions): () => number {
  let askedMs = Number.NEGATIVE_INFINITY;
  let cpuAskedMs = 0;
  let lastMs = 0;
  return () => {
    const nowMs = monotonicMs();
    if (nowMs - askedMs >= askedEveryMs) {
      askedMs = nowMs;
      cpuAskedMs = cpuMs();
    }
    lastMs = Math.max(lastMs, cpuAskedMs + (nowMs - askedMs));
    return lastMs;
  };
}
