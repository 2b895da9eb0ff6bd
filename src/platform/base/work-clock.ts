// A clock of the work that this thread has done, for budgets of a turn of the event loop.

interface WorkClockOptions {
  /** Milliseconds for which this thread had a processor. To ask for them is a system call. */
  readonly cpuMs: () => number;
  readonly monotonicMs: () => number;
}

/**
 * For so long after the processor's time was asked for, the thread is taken to have worked all the
 * time. So it counts at most this much too much where it had to wait for a processor.
 */
const askedEveryMs = 0.25;

/**
 * Returns a clock in milliseconds that never goes back. A system call costs 0.5 to 0.8 µs, and a
 * request of a hundred events would make three of some 170 µs.
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
