// The meters of all projects by id. A project that is deleted keeps its meter for a while, so that
// a project that is added again under the same id goes on with the old counts and debt. Must not
// know requests or NATS.

import { Meter } from "./meter.ts";

export interface KnownMeter {
  readonly projectId: string;
  readonly meter: Meter;
}

interface Meters {
  /** The project's meter, made when there is none. */
  of(projectId: string): Meter;
  /**
   * Notes that the project was deleted, until its meter is asked for again. Only the last few
   * deleted projects keep their meters.
   */
  leave(projectId: string): void;
  all(): Iterable<KnownMeter>;
}

interface MetersOptions {
  readonly monotonicMs: () => number;
  /** How many deleted projects keep their meters. */
  readonly goneMax?: number;
}

const goneMaxDefault = 1_000;

export function createMeters({ monotonicMs, goneMax = goneMaxDefault }: MetersOptions): Meters {
  const meters = new Map<string, Meter>();
  // The ids of deleted projects, the longest deleted first.
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
