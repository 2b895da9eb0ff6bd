// Accumulates a flooded project's quota into portions. Tokens return one by one, and a flood takes
// each at once: then each of its events is a frame, and an fsync that delays other projects. So a
// project that is refused repeatedly is refused for the rest of a short time, and the requests that
// its quota allows after that arrive together. Does not handle requests.

/**
 * How long the tokens of a portion accumulate, in milliseconds. A client waits a second at least.
 */
export const portionMs = 25;
/**
 * Number of refusals within the time of a portion that make a flood: 300 a second. A client that is
 * occasionally over its quota is admitted as soon as there is a token.
 */
export const refusalsOfFlood = 8;

export class Portions {
  #sinceMonotonicMs = Number.NEGATIVE_INFINITY;
  #refusals = 0;

  /** Returns the milliseconds until the project is admitted again; 0 if it is not blocked. */
  waitMs(monotonicMs: number): number {
    if (this.#refusals < refusalsOfFlood) return 0;
    const elapsedMs = monotonicMs - this.#sinceMonotonicMs;
    // A clock that went back blocks no project.
    return elapsedMs >= 0 && elapsedMs < portionMs ? portionMs - elapsedMs : 0;
  }

  /** Counts a request that was refused because there was no token. */
  refused(monotonicMs: number): void {
    const elapsedMs = monotonicMs - this.#sinceMonotonicMs;
    if (elapsedMs >= 0 && elapsedMs < portionMs) {
      this.#refusals++;
      return;
    }
    this.#sinceMonotonicMs = monotonicMs;
    this.#refusals = 1;
  }
}
