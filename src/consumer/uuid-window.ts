// Remembers which events were delivered, by project and uuid, in a window that is bounded in number
// and time. A frame that is delivered again finds its own events and keeps them.

interface UuidWindowOptions {
  readonly maxUuids: number;
  readonly windowMs: number;
  readonly monotonicMs: () => number;
}

interface Entry {
  /** The frame that delivered the event. */
  readonly frame: number;
  readonly atMs: number;
}

export class UuidWindow {
  readonly #options: UuidWindowOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: UuidWindowOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Notes the event. True: another frame has delivered it within the window. */
  isDuplicate(projectId: string, uuid: string, frame: number): boolean {
    const { maxUuids, windowMs, monotonicMs } = this.#options;
    if (maxUuids === 0) return false;
    const nowMs = monotonicMs();
    for (const [key, { atMs }] of this.#entries) {
      if (nowMs - atMs < windowMs) break;
      this.#entries.delete(key);
    }
    const key = `${projectId}/${uuid}`;
    const known = this.#entries.get(key);
    if (known !== undefined) return known.frame !== frame;
    this.#entries.set(key, { frame, atMs: nowMs });
    if (this.#entries.size > maxUuids) {
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest);
        break;
      }
    }
    return false;
  }
}
