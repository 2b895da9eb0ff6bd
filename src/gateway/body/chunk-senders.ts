// Remembers which addresses lately sent bodies in too small chunks. What has been read of such a
// body costs tens of milliseconds before it can be refused. So an address is told a few times a
// second; after that, its connections end at the head of the next chunked body.

import { RateWindow } from "../../platform/base/rate-window.ts";

/**
 * So many times a second an address is told that its chunks are too small. For the rest of that
 * second it may send no chunked body.
 */
const toldPerSecondMax = 4;
/**
 * So many addresses are remembered at most. Past that, the one that was last told longest ago is
 * forgotten.
 */
const addressesMax = 4_096;

export class ChunkSenders {
  readonly #monotonicMs: () => number;
  /** How often each address was told in this second. The address that was told last stands last. */
  readonly #told = new Map<string, RateWindow>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Notes that the address is told once more that its chunks are too small. */
  tell(address: string): void {
    const told =
      this.#told.get(address) ??
      new RateWindow({ max: toldPerSecondMax, monotonicMs: this.#monotonicMs });
    told.spend(1);
    this.#told.delete(address);
    this.#told.set(address, told);
    if (this.#told.size > addressesMax) this.#told.delete(this.#told.keys().next().value!);
  }

  /**
   * The address has been told as often as it may be in this second: no chunked body of it is read.
   */
  isBarred(address: string): boolean {
    const told = this.#told.get(address);
    if (told === undefined) return false;
    if (told.left === toldPerSecondMax) this.#told.delete(address);
    return told.isSpent;
  }
}
