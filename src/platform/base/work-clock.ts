// A clock of the work that this thread has done, for budgets of a turn of the event loop.

interface WorkClockOptions {
  /** CPU time of this thread in milliseconds. Each call is a system call. */
  readonly cpuMs: () => number;
  readonly monotonicMs: () => number;
}

/**
 * For this long after a read of the CPU time, the thread is assumed to be working. So the clock
 * counts at most this much too much if the thread had to wait for a processor.
 */
const askedEveryMs = 0.25;

/**
 * Returns a monotonic clock in milliseconds. A system call costs 0.5 to 0.8 µs, and a request of a
 * hundred events would make three of them in some 170 µs.
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
