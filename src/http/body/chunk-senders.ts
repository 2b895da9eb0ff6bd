// Which addresses sent bodies in too small chunks lately. What has been read of such a body costs
// tens of milliseconds before it can be refused, so an address is told a few times, and then the
// connections on which it would send another chunked body end at the head.

import { RateWindow } from "../../base/rate-window.ts";

/** An address is told so many times a second, and not heard for the rest of it. */
const toldPerSecondMax = 4;
/** Where there are more addresses, the one that was told least lately is forgotten. */
const addressesMax = 4_096;

export class ChunkSenders {
  readonly #monotonicMs: () => number;
  /** The address that was told last is last. */
  readonly #told = new Map<string, RateWindow>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Notes that the address is told once more. */
  tell(address: string): void {
    const told =
      this.#told.get(address) ??
      new RateWindow({ max: toldPerSecondMax, monotonicMs: this.#monotonicMs });
    told.spend(1);
    this.#told.delete(address);
    this.#told.set(address, told);
    if (this.#told.size > addressesMax) this.#told.delete(this.#told.keys().next().value!);
  }

  /** The address has been told often enough. */
  isBarred(address: string): boolean {
    const told = this.#told.get(address);
    if (told === undefined) return false;
    if (told.left === toldPerSecondMax) this.#told.delete(address);
    return told.isSpent;
  }
}
