// Answers that were good, by what was asked, up to so many bytes. What was asked once goes first,
// so that questions which nobody repeats, however many, take no room from those that many ask.
// Knows how long an answer is fresh, and for how long it may be given.

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
/** What was asked again takes this share at most, so that something new can come to it. */
const shareOfRepeated = 3 / 4;
/** However long an upstream says that an answer is fresh. */
const freshMsMax = 86_400_000;

/** In the order in which they were asked for. */
class Shelf {
  readonly #answers = new Map<string, KeptAnswer>();
  bytes = 0;

  put(key: string, kept: KeptAnswer): void {
    this.take(key);
    this.#answers.set(key, kept);
    this.bytes += bytesOf(key, kept);
  }

  take(key: string): KeptAnswer | undefined {
    const kept = this.#answers.get(key);
    if (kept === undefined) return undefined;
    this.#answers.delete(key);
    this.bytes -= bytesOf(key, kept);
    return kept;
  }

  /** Lets those go that were not asked for the longest. */
  shrinkTo(bytesMax: number): void {
    for (const key of this.#answers.keys()) {
      if (this.bytes <= bytesMax) return;
      this.take(key);
    }
  }
}

export class KeptAnswers {
  readonly #options: KeptAnswersOptions;
  readonly #once = new Shelf();
  readonly #repeated = new Shelf();

  constructor(options: KeptAnswersOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#once.bytes + this.#repeated.bytes;
  }

  keep(key: string, answer: UpstreamAnswer, freshMs: number): void {
    const { bytesMax, monotonicMs } = this.#options;
    const wasRepeated = this.#repeated.take(key) !== undefined;
    this.#once.take(key);
    const kept = { ...answer, keptMs: monotonicMs(), freshMs: Math.min(freshMs, freshMsMax) };
    if (bytesOf(key, kept) > bytesMax * shareOfOne) return;
    (wasRepeated ? this.#repeated : this.#once).put(key, kept);
    this.#repeated.shrinkTo(bytesMax * shareOfRepeated);
    this.#once.shrinkTo(bytesMax - this.#repeated.bytes);
  }

  /** Undefined: there is none, or it is too old to be given. */
  get(key: string): { answer: UpstreamAnswer; isFresh: boolean; ageMs: number } | undefined {
    const kept = this.#repeated.take(key) ?? this.#once.take(key);
    if (kept === undefined) return undefined;
    const { monotonicMs, ageMsMax, bytesMax } = this.#options;
    const ageMs = monotonicMs() - kept.keptMs;
    if (ageMs > ageMsMax) return undefined;
    this.#repeated.put(key, kept);
    this.#repeated.shrinkTo(bytesMax * shareOfRepeated);
    return { answer: kept, isFresh: ageMs < kept.freshMs, ageMs };
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
  return seconds === null ? 0 : Math.max(0, Number(seconds[1]) * 1_000 - ageMsOf(headers));
}

/** How old the answer was when it came, by what those say who had kept it before. */
export function ageMsOf(headers: UpstreamAnswer["headers"]): number {
  const [, age = ""] = headers.find(([name]) => name === "Age") ?? [];
  return /^\d{1,9}$/.test(age) ? Number(age) * 1_000 : 0;
}

/** What an answer may differ by: it is part of what it is kept by, or changes no content. */
const varyingByKey: ReadonlySet<string> = new Set([
  "accept-encoding",
  "origin",
  "referer",
  "access-control-request-headers",
  "access-control-request-method",
]);
