// The meters of all projects by id. A project that is deleted keeps its meter for a while, so that
// one that is added again under its id goes on with the counts and the debt there were. Must not
// know requests or NATS.

import { Meter } from "./meter.ts";

export interface KnownMeter {
  readonly projectId: string;
  readonly meter: Meter;
}

export interface Meters {
  /** The project's own, made when there is none. */
  of(projectId: string): Meter;
  /**
   * The project is gone, until its meter is asked for again. Of those that are gone only the last
   * few keep their meters.
   */
  leave(projectId: string): void;
  all(): Iterable<KnownMeter>;
}

export interface MetersOptions {
  readonly monotonicMs: () => number;
  /** Meters kept of projects that are gone. */
  readonly goneMax?: number;
}

const goneMaxDefault = 1_000;

export function createMeters({ monotonicMs, goneMax = goneMaxDefault }: MetersOptions): Meters {
  const meters = new Map<string, Meter>();
  // The longest gone first.
  const gone = new Set<string>();

  function of(projectId: string): Meter {
    gone.delete(projectId);
    const known = meters.get(projectId);
    if (known !== undefined) return known;
    const meter = new Meter(monotonicMs);
    meters.set(projectId, meter);
    return meter;
  }

  function leave(projectId: string): void {
    if (meters.has(projectId)) gone.add(projectId);
    if (gone.size <= goneMax) return;
    const [longestGone = ""] = gone;
    gone.delete(longestGone);
    meters.delete(longestGone);
  }

  function* all(): Generator<KnownMeter> {
    for (const [projectId, meter] of meters) yield { projectId, meter };
  }

  return { of, leave, all };
}
