import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "./log.ts";

interface PauseOptions {
  readonly ref?: boolean;
}

export async function pauseUntilAborted(
  ms: number,
  signal: AbortSignal,
  { ref = true }: PauseOptions = {},
): Promise<void> {
  await delay(ms, undefined, { signal, ref }).catch(() => {});
}

/**
 * Waits until the work ends, `ms` milliseconds have passed, or `rest` is aborted. Rejects if the
 * work rejects.
 */
export async function atMost(
  ms: number,
  work: Promise<unknown>,
  rest = new AbortController(),
): Promise<void> {
  try {
    await Promise.race([work, pauseUntilAborted(ms, rest.signal)]);
  } finally {
    rest.abort();
  }
}

/** Waits for the work. Rejects with `late` after `ms`, but does not stop the work. */
export async function inTime<T>(
  work: Promise<T>,
  ms: number,
  late = new Error("no response in time"),
): Promise<T> {
  const over = new AbortController();
  const timeout = delay(ms, undefined, { signal: over.signal }).then(() => {
    throw late;
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    over.abort();
  }
}

export class SparseWarning {
  readonly #log: Pick<Log, "warn">;
  readonly #everyMs: number;
  #saidMonotonicMs = Number.NEGATIVE_INFINITY;

  constructor(log: Pick<Log, "warn">, everyMs: number) {
    this.#log = log;
    this.#everyMs = everyMs;
  }

  warn(fields: object, message: string): boolean {
    const monotonicMs = performance.now();
    if (monotonicMs - this.#saidMonotonicMs < this.#everyMs) return false;
    this.#saidMonotonicMs = monotonicMs;
    this.#log.warn(fields, message);
    return true;
  }
}

interface RetryOptions {
  readonly pauseMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly warning: SparseWarning;
  /** Returns the log line for a failed attempt. Throws the error if a retry cannot succeed. */
  readonly explain: (error: unknown) => { readonly fields: object; readonly message: string };
}

/** Repeats `work` until it succeeds. Rejects if `explain` throws or the signal aborts. */
export async function retryWithWarning<T>(
  work: () => Promise<T>,
  { pauseMs, signal, warning, explain }: RetryOptions,
): Promise<T> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const { fields, message } = explain(error);
      warning.warn(fields, message);
    }
    signal?.throwIfAborted();
    await delay(pauseMs, undefined, signal === undefined ? {} : { signal });
  }
}

interface RestartOptions {
  readonly signal: AbortSignal;
  readonly pauseMsMin: number;
  readonly pauseMsMax: number;
  readonly steadyMs: number;
  readonly ended: (pauseMs: number, error: unknown) => void;
}

export const processPauses = { pauseMsMin: 100, pauseMsMax: 5_000, steadyMs: 30_000 } as const;

/** Calls `run` again whenever it has ended, until the signal aborts. Never rejects. */
export async function restartLoop(
  run: () => Promise<void>,
  { signal, pauseMsMin, pauseMsMax, steadyMs, ended }: RestartOptions,
): Promise<void> {
  let pauseMs = pauseMsMin;
  while (!signal.aborted) {
    const sinceMonotonicMs = performance.now();
    let error: unknown;
    try {
      await run();
      if (performance.now() - sinceMonotonicMs > steadyMs) pauseMs = pauseMsMin;
    } catch (thrown) {
      error = thrown;
    }
    if (signal.aborted) return;
    ended(pauseMs, error);
    await pauseUntilAborted(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, pauseMsMax);
  }
}
