// Waits until streams are applied up to the requested sequences.
//
// If the writer runs in this process, waits for the writer first. Otherwise, polls the database
// with one query for all waiting clients.

import { setTimeout as delay } from "node:timers/promises";
import type { AppliedStream } from "../store/port.ts";

type Wanted = ReadonlyMap<string, number>;

export type Written = (wanted: Wanted, signal: AbortSignal) => Promise<unknown> | undefined;

interface WaitsOptions {
  readonly applied: () => Promise<readonly AppliedStream[]>;
  readonly written?: Written | undefined;
  readonly timeoutMs: number;
  readonly waitsMax: number;
}

type WaitOutcome = "applied" | "timed out" | "too many";

interface Waiting {
  readonly wanted: Wanted;
  readonly reached: () => void;
}

const pollMs = 10;
const streamName = /^[A-Za-z0-9_-]{1,255}$/;
const wantedMax = 64;

export function wantedFrom(texts: readonly string[]): Wanted {
  if (texts.length > wantedMax) throw new Error(`is given more than ${wantedMax} times`);
  const wanted = new Map<string, number>();
  for (const text of texts) {
    const [stream = "", digits = "", ...more] = text.split(":");
    const sequence = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
    if (!streamName.test(stream) || !Number.isSafeInteger(sequence) || more.length > 0)
      throw new Error("must be <stream>:<sequence>, such as PENSTOCK_LIVE_0:17");
    wanted.set(stream, Math.max(sequence, wanted.get(stream) ?? 0));
  }
  return wanted;
}

export class Waits {
  readonly #options: WaitsOptions;
  readonly #waiting = new Set<Waiting>();
  readonly #asked = new Set<Waiting>();
  #isAsking = false;

  constructor(options: WaitsOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Waits until the sequences are applied. Rejects if the first database query fails. If the signal
   * aborts, rejects with its reason.
   */
  async until(wanted: Wanted, signal: AbortSignal): Promise<WaitOutcome> {
    if (isReached(wanted, await this.#options.applied())) return "applied";
    if (this.#waiting.size >= this.#options.waitsMax) return "too many";
    signal.throwIfAborted();
    const settled = Promise.withResolvers<WaitOutcome>();
    const waiting = { wanted, reached: () => settled.resolve("applied") };
    const gone = (): void => settled.reject(signal.reason as Error);
    const timer = setTimeout(() => settled.resolve("timed out"), this.#options.timeoutMs);
    signal.addEventListener("abort", gone, { once: true });
    const ended = new AbortController();
    this.#waiting.add(waiting);
    void this.#askOnceWritten(waiting, ended.signal);
    try {
      return await settled.promise;
    } finally {
      ended.abort();
      clearTimeout(timer);
      signal.removeEventListener("abort", gone);
      this.#waiting.delete(waiting);
      this.#asked.delete(waiting);
    }
  }

  async #askOnceWritten(waiting: Waiting, signal: AbortSignal): Promise<void> {
    try {
      await (this.#options.written?.(waiting.wanted, signal) ?? delay(pollMs));
    } catch {}
    if (signal.aborted) return;
    this.#asked.add(waiting);
    if (!this.#isAsking) void this.#ask();
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    while (this.#asked.size > 0) {
      const applied = await this.#options.applied().catch(() => []);
      for (const waiting of this.#asked) {
        if (!isReached(waiting.wanted, applied)) continue;
        this.#asked.delete(waiting);
        waiting.reached();
      }
      if (this.#asked.size > 0) await delay(pollMs);
    }
    this.#isAsking = false;
  }
}

function isReached(wanted: Wanted, applied: readonly AppliedStream[]): boolean {
  const sequences = new Map(applied.map(({ stream, sequence }) => [stream, sequence]));
  return [...wanted].every(([stream, sequence]) => (sequences.get(stream) ?? 0) >= sequence);
}
