// Which addresses sent bodies in too small chunks lately. What has been read of such a body costs
// tens of milliseconds before it can be refused, so an address is told a few times, and then the
// connections on which it would send another chunked body end at the head.

/** Told so many times in so long; after that nothing is heard of it until that long has passed. */
const toldMax = 4;
const forMs = 1_000;
/** Of more, the oldest is forgotten. */
const addressesMax = 4_096;

interface Told {
  readonly sinceMs: number;
  times: number;
}

export class ChunkSenders {
  readonly #nowMs: () => number;
  /** The one that was told first is first. */
  readonly #told = new Map<string, Told>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** It is told, once more. */
  tell(address: string): void {
    const told = this.#recent(address) ?? { sinceMs: this.#nowMs(), times: 0 };
    told.times++;
    this.#told.set(address, told);
    if (this.#told.size > addressesMax) this.#told.delete(this.#told.keys().next().value!);
  }

  /** It has been told often enough. */
  isBarred(address: string): boolean {
    return this.#told.size > 0 && (this.#recent(address)?.times ?? 0) >= toldMax;
  }

  #recent(address: string): Told | undefined {
    const told = this.#told.get(address);
    if (told === undefined || this.#nowMs() < told.sinceMs + forMs) return told;
    this.#told.delete(address);
    return undefined;
  }
}
