// Remembers which frame delivered an event, for a limited number of events and time. If a frame is
// delivered again, its own events are not duplicates.

interface UuidWindowOptions {
  readonly maxUuids: number;
  readonly windowMs: number;
  readonly monotonicMs: () => number;
}

interface Noted {
  readonly key: string;
  readonly atMs: number;
}

export class UuidWindow {
  readonly #options: UuidWindowOptions;
  /** Frame of each event, by the key of the event. */
  readonly #frames = new Map<string, number>();
  /** Keys in insertion order. The oldest entry of a Map is slow to find after many deletions. */
  #order: Noted[] = [];
  #oldest = 0;

  constructor(options: UuidWindowOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#frames.size;
  }

  /** Records the event. Returns another frame that delivered it. The window stores the key. */
  duplicateOf(key: string, frame: number): number | undefined {
    const { maxUuids, windowMs, monotonicMs } = this.#options;
    if (maxUuids === 0) return undefined;
    const nowMs = monotonicMs();
    this.#forget(nowMs - windowMs);
    const known = this.#frames.get(key);
    if (known !== undefined) return known === frame ? undefined : known;
    this.#frames.set(key, frame);
    this.#order.push({ key, atMs: nowMs });
    if (this.size > maxUuids) this.#forgetOldest();
    return undefined;
  }

  #forget(untilMs: number): void {
    while (this.size > 0 && this.#order[this.#oldest]!.atMs <= untilMs) this.#forgetOldest();
  }

  #forgetOldest(): void {
    this.#frames.delete(this.#order[this.#oldest++]!.key);
    if (this.#oldest <= this.size) return;
    this.#order = this.#order.slice(this.#oldest);
    this.#oldest = 0;
  }
}
