// The meters of all projects by id. A project that is deleted keeps its meter for a while, so that
// a project that is added again under the same id goes on with the old counts and debt. Must not
// know requests or NATS.

import { Meter } from "./meter.ts";

export interface KnownMeter {
  readonly projectId: string;
  readonly meter: Meter;
}

interface MetersOptions {
  readonly monotonicMs: () => number;
  /** How many deleted projects keep their meters. */
  readonly goneMax?: number;
}

const goneMaxDefault = 1_000;

export class Meters {
  readonly #monotonicMs: () => number;
  readonly #goneMax: number;
  readonly #meters = new Map<string, Meter>();
  /** The ids of deleted projects, the longest deleted first. */
  readonly #gone = new Set<string>();
  /** The meters that were evicted since they were last taken. */
  #evicted: KnownMeter[] = [];
  #evictions = 0;

  constructor({ monotonicMs, goneMax = goneMaxDefault }: MetersOptions) {
    this.#monotonicMs = monotonicMs;
    this.#goneMax = goneMax;
  }

  /** The project's meter, made when there is none. */
  of(projectId: string): Meter {
    this.#gone.delete(projectId);
    const known = this.#meters.get(projectId);
    if (known !== undefined) return known;
    const meter = new Meter(this.#monotonicMs, this.#evictions);
    this.#meters.set(projectId, meter);
    return meter;
  }

  /**
   * Notes that the project was deleted, until its meter is asked for again. Only the last few
   * deleted projects keep their meters.
   */
  leave(projectId: string): void {
    if (this.#meters.has(projectId)) this.#gone.add(projectId);
    if (this.#gone.size <= this.#goneMax) return;
    const [longestGone = ""] = this.#gone;
    this.#gone.delete(longestGone);
    this.#evictions++;
    this.#evicted.push({ projectId: longestGone, meter: this.#meters.get(longestGone)! });
    this.#meters.delete(longestGone);
  }

  /** The meters that were evicted since the last call, whose counts may not be written yet. */
  takeEvicted(): readonly KnownMeter[] {
    const evicted = this.#evicted;
    this.#evicted = [];
    return evicted;
  }

  *all(): Generator<KnownMeter> {
    for (const [projectId, meter] of this.#meters) yield { projectId, meter };
  }
}
