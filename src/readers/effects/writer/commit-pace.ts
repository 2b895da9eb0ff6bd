// How soon a commit may follow the last one where little comes. A commit costs about as much for
// one event as for a hundred, and many a second are most of what effects cost beside single events.
// So what comes within some hundredths of a second is committed together, unless somebody waits for
// it.

import { pauseUntilAborted } from "../../../platform/base/retry.ts";

const everyMsDefault = 50;
/** How long a batch waits for what a stream is known to have. */
const moreMsMax = 100;

export class CommitPace {
  readonly #everyMs: number;
  #begunMonotonicMs = Number.NEGATIVE_INFINITY;
  #rest: AbortController | undefined;

  /** From the beginning of a commit to that of the next one, at least. */
  constructor(everyMs: number = everyMsDefault) {
    this.#everyMs = everyMs;
  }

  /** A commit begins. */
  begun(): void {
    this.#begunMonotonicMs = performance.now();
  }

  /** Fulfilled when the next commit may begin, when `more` is, or when somebody is in a hurry. */
  async rest(more: Promise<void>): Promise<void> {
    const ms = this.#begunMonotonicMs + this.#everyMs - performance.now();
    if (ms <= 0) return;
    this.#rest = new AbortController();
    await atMost(ms, more, this.#rest);
  }

  hurry(): void {
    this.#rest?.abort();
  }
}

/** Fulfilled when more that a stream is known to have is there, or is a long time coming. */
export async function knownMore(more: Promise<void>): Promise<void> {
  await atMost(moreMsMax, more);
}

/** Fulfilled when that is, after so many milliseconds, or when the rest is broken off. */
async function atMost(
  ms: number,
  that: Promise<void>,
  rest = new AbortController(),
): Promise<void> {
  await Promise.race([that, pauseUntilAborted(ms, rest.signal)]);
  rest.abort();
}
