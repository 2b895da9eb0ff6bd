// Counts events, duplicates and active distinct ids per UTC day of `received_at`.

import { dayMs, dayOf } from "../../../platform/base/day.ts";
import { lanes } from "../../../platform/nats/names.ts";
import type { StoredLine } from "../lines/line.ts";
import type { EffectsStore } from "../store/port.ts";
import {
  type ActiveIdsRow,
  type Commit,
  type UsageClass,
  type UsageDelta,
  usageClasses,
} from "../types.ts";
import { IdSketch } from "./id-sketch.ts";

const countsOfClass = 4;
const classAt = Object.fromEntries(
  usageClasses.map((usageClass, index) => [usageClass, countsOfClass * index]),
) as Readonly<Record<UsageClass, number>>;

interface ProjectDay {
  readonly projectId: string;
  readonly day: number;
  readonly dayText: string;
  readonly counts: number[];
  /** If `isLoaded` is false, the sketch contains only the ids of the current batch. */
  sketch: IdSketch | undefined;
  isLoaded: boolean;
  /** If true, the sketch contains ids that are neither stored nor in a running commit. */
  isChanged: boolean;
  batch: number;
}

type Day = Parameters<EffectsStore["activeIds"]>[0][number];

/**
 * Counts the usage of all projects. The caller calls `count` for each line. At the end of a batch,
 * it loads the rows of `missing` and calls `adopt` and `changes`. It may count the next batch
 * before it calls `committed` or `discard`.
 */
export class Usage {
  readonly #daysMax: number;
  readonly #projects = new Map<string, Map<number, ProjectDay>>();
  #daysTotal = 0;
  #touched: ProjectDay[] = [];
  #last: ProjectDay | undefined;
  #batch = 1;
  #today = { day: 0, text: "1970-01-01" };

  /** `daysMax` is the maximum number of cached days of all projects, besides the current batch. */
  constructor(options: { readonly daysMax?: number } = {}) {
    this.#daysMax = options.daysMax ?? 10_000;
  }

  count(line: StoredLine, isDuplicate: boolean): void {
    const day = Math.floor(line.receivedAtMs / dayMs);
    let found = this.#last;
    if (found === undefined || found.day !== day || found.projectId !== line.projectId)
      found = this.#dayOf(line.projectId, day);
    const isLive = line.frame.lane === "live";
    const at = classAt[line.usageClass] + (isLive ? 0 : 2) + (isDuplicate ? 1 : 0);
    found.counts[at]! += 1;
    if (!isLive || isDuplicate || !line.hasPerson) return;
    found.sketch ??= new IdSketch();
    if (found.sketch.add(line.idHashHigh, line.idHashLow)) found.isChanged = true;
  }

  missing(): readonly Day[] {
    return this.#touched
      .filter((one) => one.sketch !== undefined && !one.isLoaded)
      .map(({ projectId, dayText }) => ({ projectId, day: dayText }));
  }

  adopt(rows: readonly ActiveIdsRow[]): void {
    for (const row of rows) {
      const found = this.#projects.get(row.projectId)?.get(Date.parse(row.day) / dayMs);
      if (found === undefined || found.isLoaded) continue;
      const stored = IdSketch.from(row.registers);
      found.isChanged = found.sketch !== undefined && stored.join(found.sketch);
      found.sketch = stored;
    }
    for (const one of this.#touched) if (one.sketch !== undefined) one.isLoaded = true;
  }

  changes(): Pick<Commit, "usage" | "activeIds"> {
    const usage: UsageDelta[] = [];
    const activeIds: ActiveIdsRow[] = [];
    for (const one of this.#touched) {
      addDeltas(one, usage);
      one.counts.fill(0);
      if (one.isChanged && one.sketch !== undefined) {
        const registers = one.sketch.bytes();
        const estimate = one.sketch.estimate();
        activeIds.push({ projectId: one.projectId, day: one.dayText, registers, estimate });
        one.isChanged = false;
      }
    }
    this.#touched = [];
    this.#last = undefined;
    this.#batch++;
    return { usage, activeIds };
  }

  committed(): void {
    for (const [projectId, days] of this.#projects) {
      if (this.#daysTotal <= this.#daysMax) return;
      for (const [day, { batch }] of days) {
        if (batch === this.#batch) continue;
        days.delete(day);
        this.#daysTotal--;
      }
      if (days.size === 0) this.#projects.delete(projectId);
    }
  }

  discard(): void {
    this.#projects.clear();
    this.#daysTotal = 0;
    this.#touched = [];
    this.#last = undefined;
  }

  #dayOf(projectId: string, day: number): ProjectDay {
    let days = this.#projects.get(projectId);
    if (days === undefined) {
      days = new Map();
      this.#projects.set(projectId, days);
    }
    let found = days.get(day);
    if (found === undefined) {
      if (this.#today.day !== day) this.#today = { day, text: textOf(day) };
      const counts = new Array<number>(countsOfClass * usageClasses.length).fill(0);
      found = {
        projectId,
        day,
        dayText: this.#today.text,
        counts,
        sketch: undefined,
        isLoaded: false,
        isChanged: false,
        batch: 0,
      };
      days.set(day, found);
      this.#daysTotal++;
    }
    if (found.batch !== this.#batch) {
      found.batch = this.#batch;
      this.#touched.push(found);
    }
    this.#last = found;
    return found;
  }
}

function addDeltas(one: ProjectDay, deltas: UsageDelta[]): void {
  for (const usageClass of usageClasses) {
    for (const lane of lanes) {
      const at = classAt[usageClass] + (lane === "live" ? 0 : 2);
      const events = one.counts[at]!;
      const duplicates = one.counts[at + 1]!;
      if (events + duplicates === 0) continue;
      const { projectId } = one;
      deltas.push({
        projectId,
        day: one.dayText,
        lane,
        class: usageClass,
        events,
        duplicates,
      });
    }
  }
}

function textOf(day: number): string {
  return dayOf(day * dayMs);
}
