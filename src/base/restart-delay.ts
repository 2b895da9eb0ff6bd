// How long to wait before something that died is started again: at first hardly, longer and longer
// for what dies again and again, and hardly again after it has run well.

const delayMsMin = 100;
const delayMsMax = 5_000;
/** What ran this long was healthy. */
const healthyMs = 30_000;

export class RestartDelay {
  #nextMs = delayMsMin;

  /** The wait after a death; `ranMs` is how long it ran until then. */
  afterMs(ranMs: number): number {
    const waitMs = ranMs > healthyMs ? delayMsMin : this.#nextMs;
    this.#nextMs = Math.min(waitMs * 2, delayMsMax);
    return waitMs;
  }
}
