// A cache of successful answers, limited in bytes. Answers that were requested only once are
// evicted first, so that they do not replace answers that are requested often.

import type { UpstreamAnswer } from "./upstream-client.ts";

interface CachedAnswer extends UpstreamAnswer {
  readonly storedMs: number;
  readonly freshMs: number;
}

interface AnswerCacheOptions {
  readonly bytesMax: number;
  readonly ageMsMax: number;
  readonly monotonicMs: () => number;
}

const entryBytes = 512;
const shareOfOne = 1 / 8;
const shareOfRepeated = 3 / 4;
const freshMsMax = 86_400_000;

class LruAnswers {
  readonly #answers = new Map<string, CachedAnswer>();
  bytes = 0;

  put(key: string, cached: CachedAnswer): void {
    this.take(key);
    this.#answers.set(key, cached);
    this.bytes += bytesOf(key, cached);
  }

  take(key: string): CachedAnswer | undefined {
    const cached = this.#answers.get(key);
    if (cached === undefined) return undefined;
    this.#answers.delete(key);
    this.bytes -= bytesOf(key, cached);
    return cached;
  }

  shrinkTo(bytesMax: number): void {
    for (const key of this.#answers.keys()) {
      if (this.bytes <= bytesMax) return;
      this.take(key);
    }
  }
}

export class AnswerCache {
  readonly #options: AnswerCacheOptions;
  readonly #once = new LruAnswers();
  readonly #repeated = new LruAnswers();

  constructor(options: AnswerCacheOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#once.bytes + this.#repeated.bytes;
  }

  store(key: string, answer: UpstreamAnswer, freshMs: number): void {
    const { bytesMax, monotonicMs } = this.#options;
    const wasRepeated = this.#repeated.take(key) !== undefined;
    this.#once.take(key);
    const cached = { ...answer, storedMs: monotonicMs(), freshMs: Math.min(freshMs, freshMsMax) };
    if (bytesOf(key, cached) > bytesMax * shareOfOne) return;
    (wasRepeated ? this.#repeated : this.#once).put(key, cached);
    this.#repeated.shrinkTo(bytesMax * shareOfRepeated);
    this.#once.shrinkTo(bytesMax - this.#repeated.bytes);
  }

  get(key: string): { answer: UpstreamAnswer; isFresh: boolean; ageMs: number } | undefined {
    const cached = this.#repeated.take(key) ?? this.#once.take(key);
    if (cached === undefined) return undefined;
    const { monotonicMs, ageMsMax, bytesMax } = this.#options;
    const ageMs = monotonicMs() - cached.storedMs;
    if (ageMs > ageMsMax) return undefined;
    this.#repeated.put(key, cached);
    this.#repeated.shrinkTo(bytesMax * shareOfRepeated);
    return { answer: cached, isFresh: ageMs < cached.freshMs, ageMs };
  }
}

function bytesOf(key: string, { body, headers }: UpstreamAnswer): number {
  const texts = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  return entryBytes + key.length + body.length + texts;
}

/**
 * Returns how long an answer is fresh, in milliseconds. Returns undefined if the answer must not be
 * cached (RFC 9111).
 */
export function freshMsOf(headers: UpstreamAnswer["headers"]): number | undefined {
  const all = new Map(headers.map(([name, value]) => [name.toLowerCase(), value.toLowerCase()]));
  const vary = (all.get("vary") ?? "").split(",").map((name) => name.trim());
  if (vary.some((name) => name !== "" && !varyingByKey.has(name))) return undefined;
  const control = all.get("cache-control") ?? "";
  if (/\b(?:no-store|private)\b/.test(control)) return undefined;
  if (/\bno-cache\b/.test(control)) return 0;
  const seconds = /\bs-maxage=(\d{1,9})/.exec(control) ?? /\bmax-age=(\d{1,9})/.exec(control);
  return seconds === null ? 0 : Math.max(0, Number(seconds[1]) * 1_000 - ageMsOf(headers));
}

export function ageMsOf(headers: UpstreamAnswer["headers"]): number {
  const [, age = ""] = headers.find(([name]) => name === "Age") ?? [];
  return /^\d{1,9}$/.test(age) ? Number(age) * 1_000 : 0;
}

const varyingByKey: ReadonlySet<string> = new Set([
  "accept-encoding",
  "origin",
  "referer",
  "access-control-request-headers",
  "access-control-request-method",
]);
