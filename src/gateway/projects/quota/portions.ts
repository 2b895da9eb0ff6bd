// What the quota of a flooded project lets through, gathered into portions. Tokens come back one by
// one, and a flood takes each as it comes: then each of its events is a frame, and an fsync, that
// its neighbours wait for. So a project that is refused again and again is refused for the rest of
// a short time, and what its quota lets through after that comes together. Must not know requests.

/** How long the tokens of a portion gather, in milliseconds. A client waits a second at least. */
export const portionMs = 25;
/**
 * So many refusals within the time of a portion are a flood: as many as 300 a second. A client
 * that is now and then over its quota is let in as soon as there is a token.
 */
export const refusalsOfFlood = 8;

export class Portions {
  #sinceMonotonicMs = Number.NEGATIVE_INFINITY;
  #refusals = 0;

  /** Milliseconds until the project is let in again; 0 where it is not kept out. */
  waitMs(monotonicMs: number): number {
    if (this.#refusals < refusalsOfFlood) return 0;
    const elapsedMs = monotonicMs - this.#sinceMonotonicMs;
    // A clock that went back keeps nobody out.
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
