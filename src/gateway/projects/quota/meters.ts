// The meters of all projects by id. A deleted project retains its meter for a while. If the project
// is added again under the same id, it continues with its counts and debt. Does not depend on
// requests or NATS.

import { Meter } from "./meter.ts";

export interface KnownMeter {
  readonly projectId: string;
  readonly meter: Meter;
}

interface MetersOptions {
  readonly monotonicMs: () => number;
  /** Maximum number of deleted projects that retain their meters. */
  readonly deletedMax?: number;
}

const deletedMaxDefault = 1_000;

export class Meters {
  readonly #monotonicMs: () => number;
  readonly #deletedMax: number;
  readonly #meters = new Map<string, Meter>();
  /** The ids of deleted projects, the longest deleted first. */
  readonly #deleted = new Set<string>();
  /** The meters that were evicted since the last `takeEvicted`. */
  #evicted: KnownMeter[] = [];
  #evictions = 0;

  constructor({ monotonicMs, deletedMax = deletedMaxDefault }: MetersOptions) {
    this.#monotonicMs = monotonicMs;
    this.#deletedMax = deletedMax;
  }

  /** Returns the project's meter. Creates it if there is none. */
  of(projectId: string): Meter {
    this.#deleted.delete(projectId);
    const known = this.#meters.get(projectId);
    if (known !== undefined) return known;
    const meter = new Meter(this.#monotonicMs, this.#evictions);
    this.#meters.set(projectId, meter);
    return meter;
  }

  /**
   * Marks the project as deleted until its meter is requested again. Only the most recently deleted
   * projects retain their meters.
   */
  leave(projectId: string): void {
    if (this.#meters.has(projectId)) this.#deleted.add(projectId);
    if (this.#deleted.size <= this.#deletedMax) return;
    const [longestDeleted = ""] = this.#deleted;
    this.#deleted.delete(longestDeleted);
    this.#evictions++;
    this.#evicted.push({ projectId: longestDeleted, meter: this.#meters.get(longestDeleted)! });
    this.#meters.delete(longestDeleted);
  }

  /**
   * Returns the meters that were evicted since the last call. Their last counts may not be written
   * yet.
   */
  takeEvicted(): readonly KnownMeter[] {
    const evicted = this.#evicted;
    this.#evicted = [];
    return evicted;
  }

  *all(): Generator<KnownMeter> {
    for (const [projectId, meter] of this.#meters) yield { projectId, meter };
  }
}
