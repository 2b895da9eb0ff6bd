// Waits until streams are applied as far as a caller has asked, so that it reads its own write. All
// who wait share one question to the database; nobody asks it while nobody waits.

import { setTimeout as delay } from "node:timers/promises";
import type { AppliedStream } from "../store/port.ts";

/** Frames by stream. */
export type Wanted = ReadonlyMap<string, number>;

interface WaitsOptions {
  readonly applied: () => Promise<readonly AppliedStream[]>;
  readonly timeoutMs: number;
  /** More would have to hold more connections than this port has for them. */
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

/** Reads all `wait_for`s. Throws an Error that completes "wait_for: …". */
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
  #isAsking = false;

  constructor(options: WaitsOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Rejects when the database does not answer, or with the signal's reason when it aborts. */
  async until(wanted: Wanted, signal: AbortSignal): Promise<WaitOutcome> {
    if (isReached(wanted, await this.#options.applied())) return "applied";
    if (this.#waiting.size >= this.#options.waitsMax) return "too many";
    signal.throwIfAborted();
    const settled = Promise.withResolvers<WaitOutcome>();
    const waiting = { wanted, reached: () => settled.resolve("applied") };
    const gone = (): void => settled.reject(signal.reason as Error);
    const timer = setTimeout(() => settled.resolve("timed out"), this.#options.timeoutMs);
    signal.addEventListener("abort", gone, { once: true });
    this.#waiting.add(waiting);
    if (!this.#isAsking) void this.#ask();
    try {
      return await settled.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", gone);
      this.#waiting.delete(waiting);
    }
  }

  /** Asks a database that is away again: those who wait have a time of their own. */
  async #ask(): Promise<void> {
    this.#isAsking = true;
    while (this.#waiting.size > 0) {
      await delay(pollMs);
      const applied = await this.#options.applied().catch(() => []);
      for (const waiting of this.#waiting)
        if (isReached(waiting.wanted, applied)) waiting.reached();
    }
    this.#isAsking = false;
  }
}

function isReached(wanted: Wanted, applied: readonly AppliedStream[]): boolean {
  const sequences = new Map(applied.map(({ stream, sequence }) => [stream, sequence]));
  return [...wanted].every(([stream, sequence]) => (sequences.get(stream) ?? 0) >= sequence);
}
