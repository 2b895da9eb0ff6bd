// Answers that were good, by what was asked, up to so many bytes: the one that was not asked for
// the longest goes first. Knows how long an answer is fresh, and for how long it may be given.

import type { UpstreamAnswer } from "./upstream-client.ts";

interface KeptAnswer extends UpstreamAnswer {
  readonly keptMs: number;
  readonly freshMs: number;
}

interface KeptAnswersOptions {
  readonly bytesMax: number;
  readonly ageMsMax: number;
  readonly monotonicMs: () => number;
}

/** What an entry takes beside its body, its key and its headers. */
const entryBytes = 512;
/** One answer takes this share of the bytes at most. */
const shareOfOne = 1 / 8;
/** However long an upstream says that an answer is fresh. */
const freshMsMax = 86_400_000;

export class KeptAnswers {
  readonly #options: KeptAnswersOptions;
  /** The one that was not asked for the longest is the first. */
  readonly #answers = new Map<string, KeptAnswer>();
  #bytes = 0;

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  keep(key: string, answer: UpstreamAnswer, freshMs: number): void {
    const { bytesMax, monotonicMs } = this.#options;
    this.#delete(key);
    const kept = { ...answer, keptMs: monotonicMs(), freshMs: Math.min(freshMs, freshMsMax) };
    const bytes = bytesOf(key, kept);
    if (bytes > bytesMax * shareOfOne) return;
    this.#answers.set(key, kept);
    this.#bytes += bytes;
    for (const oldest of this.#answers.keys()) {
      if (this.#bytes <= bytesMax) break;
      this.#delete(oldest);
    }
  }

  /** Undefined: there is none, or it is too old to be given. */
  get(key: string): { answer: UpstreamAnswer; isFresh: boolean; ageMs: number } | undefined {
    const kept = this.#answers.get(key);
    if (kept === undefined) return undefined;
    const ageMs = this.#options.monotonicMs() - kept.keptMs;
    if (ageMs > this.#options.ageMsMax) {
      this.#delete(key);
      return undefined;
    }
    this.#answers.delete(key);
    this.#answers.set(key, kept);
    return { answer: kept, isFresh: ageMs < kept.freshMs, ageMs };
  }

  #delete(key: string): void {
    const kept = this.#answers.get(key);
    if (kept === undefined) return;
    this.#answers.delete(key);
    this.#bytes -= bytesOf(key, kept);
  }
}

function bytesOf(key: string, { body, headers }: UpstreamAnswer): number {
  const texts = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  return entryBytes + key.length + body.length + texts;
}

/**
 * For how long an answer is fresh by its Cache-Control, in milliseconds; undefined where it is not
 * to be kept, or is another for each client (RFC 9111).
 */
export function freshMsOf(headers: UpstreamAnswer["headers"]): number | undefined {
  const all = new Map(headers.map(([name, value]) => [name.toLowerCase(), value.toLowerCase()]));
  const vary = (all.get("vary") ?? "").split(",").map((name) => name.trim());
  if (vary.some((name) => name !== "" && !varyingByKey.has(name))) return undefined;
  const control = all.get("cache-control") ?? "";
  if (/\b(?:no-store|private)\b/.test(control)) return undefined;
  if (/\bno-cache\b/.test(control)) return 0;
  const seconds = /\bs-maxage=(\d{1,9})/.exec(control) ?? /\bmax-age=(\d{1,9})/.exec(control);
  return seconds === null ? 0 : Number(seconds[1]) * 1_000;
}

/** What an answer may differ by: it is part of what it is kept by, or changes no content. */
const varyingByKey: ReadonlySet<string> = new Set([
  "accept-encoding",
  "origin",
  "referer",
  "access-control-request-headers",
  "access-control-request-method",
]);
