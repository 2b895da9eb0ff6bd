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
  /** Returns the CPU time of this thread in milliseconds. Each call requires a system call. */
  readonly cpuMs: () => number;
  readonly monotonicMs: () => number;
}

/** The CPU time is read only after this interval. Until then, all elapsed time counts as work. */
const askedEveryMs = 0.25;

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
