// Accumulates a flooded project's quota into portions. If a flood took each refilled token at once,
// each of its events would be a frame, with an fsync that delays other projects. So a project that
// is refused repeatedly is refused for the rest of a short time. The requests that its quota allows
// after this time arrive together. Does not handle requests.

/**
 * Milliseconds for which the tokens of a portion accumulate. It is much less than the second that a
 * client waits at least.
 */
export const portionMs = 25;
/**
 * Number of refusals within a portion's time that count as a flood: 300 a second. A client that is
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
