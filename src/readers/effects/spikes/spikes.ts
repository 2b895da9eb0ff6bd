// Detects spikes in the live events of a project, and hot distinct ids. The result depends only on
// stored times, so a process that lags or restarts finds the same spikes.

import { manyProjects } from "../../../platform/nats/names.ts";
import { recordMs, type StoredLine } from "../lines/line.ts";
import type { ActivityRow, Commit, OutboxRow, SpikeRow } from "../types.ts";
import { spikeAnnouncement } from "./announcement.ts";
import { ProjectActivity, type SpikeChange } from "./project-activity.ts";

const minuteMs = 60_000;
/**
 * Delay in ms before a minute is closed. It allows for differences between the clocks of gateways,
 * and for frames that arrive out of order.
 */
const graceMs = 10_000;
const motionRow = manyProjects;

interface MinutesClosed {
  readonly partition: number;
  readonly closed: number;
}

interface WaitingLine extends MinutesClosed {
  readonly projectId: string;
  readonly minute: number;
  readonly id: string;
  readonly idHash: number;
}

type Changes = Pick<Commit, "spikes" | "activity" | "outbox">;

/**
 * Detects the spikes of all projects. The caller calls `count` for each line. At the end of a
 * batch, it loads the rows of `missing` and calls `adopt`, `apply` and `changes`. It may count the
 * next batch before it calls `committed` or `discard`.
 */
export class Spikes {
  readonly #prefix: string;
  readonly #projectsMax: number;
  readonly #projects = new Map<string, ProjectActivity>();
  /** Projects whose minutes are evaluated even if they send no events. They are never evicted. */
  readonly #inMotion = new Map<string, ProjectActivity>();
  #hasMotionChanged = false;
  #isMotionLoaded = false;
  readonly #closed: number[] = [];
  #last: ProjectActivity | undefined;
  #touched: ProjectActivity[] = [];
  #batch = 1;

  #wanted = new Set<string>();
  #waiting: (WaitingLine | MinutesClosed)[] = [];

  #spikes = new Map<string, SpikeRow>();
  #outbox: OutboxRow[] = [];

  constructor(options: { readonly prefix: string; readonly projectsMax?: number }) {
    this.#prefix = options.prefix;
    this.#projectsMax = options.projectsMax ?? 10_000;
  }

  count(line: StoredLine, isDuplicate: boolean, watermarkMs: number): void {
    if (line.frame.lane !== "live") return;
    const { partition } = line.frame;
    const closed = Math.floor((watermarkMs - graceMs) / minuteMs);
    if (closed !== this.#closed[partition]) this.#closeMinutes({ partition, closed });
    if (isDuplicate) return;
    const minute = Math.floor(recordMs(line) / minuteMs);
    const { projectId, distinctId: id, idHashHigh: idHash } = line;
    if (this.#last === undefined || this.#last.projectId !== projectId)
      this.#last = this.#projects.get(projectId);
    if (this.#last === undefined) {
      this.#wanted.add(projectId);
      this.#waiting.push({ projectId, partition, closed, minute, id, idHash });
      return;
    }
    this.#touch(this.#last);
    this.#last.partition = partition;
    this.#last.close(closed);
    this.#last.count(minute, id, idHash);
  }

  missing(): readonly string[] {
    return this.#isMotionLoaded ? [...this.#wanted] : [...this.#wanted, motionRow];
  }

  adopt(rows: readonly ActivityRow[]): void {
    const wanted = this.#wanted;
    this.#wanted = new Set();
    for (const { projectId, state } of rows) {
      if (projectId === motionRow) {
        for (const id of JSON.parse(state) as readonly string[]) this.#wanted.add(id);
      } else if (wanted.has(projectId)) {
        const activity = ProjectActivity.from(projectId, state, this.#onSpike);
        this.#projects.set(projectId, activity);
        if (activity.isInMotion) this.#inMotion.set(projectId, activity);
      }
    }
    for (const id of wanted)
      if (!this.#projects.has(id)) this.#projects.set(id, new ProjectActivity(id, this.#onSpike));
    for (const id of this.#wanted) if (this.#projects.has(id)) this.#wanted.delete(id);
    this.#isMotionLoaded = true;
  }

  apply(): void {
    if (this.missing().length > 0)
      throw new Error("cannot apply spikes: rows named by `missing` have not been read");
    for (const waiting of this.#waiting) {
      if ("projectId" in waiting) this.#countWaiting(waiting);
      else this.#judge(waiting);
    }
    this.#waiting = [];
    for (const activity of this.#touched) this.#follow(activity);
  }

  changes(): Changes {
    const activity: ActivityRow[] = this.#touched.map((one) => {
      return { projectId: one.projectId, state: one.text() };
    });
    if (this.#hasMotionChanged) {
      const state = JSON.stringify([...this.#inMotion.keys()].sort());
      activity.push({ projectId: motionRow, state });
    }
    const changes = { activity, spikes: [...this.#spikes.values()], outbox: this.#outbox };
    this.#startBatch();
    return changes;
  }

  committed(): void {
    for (const [projectId, { batch, isInMotion }] of this.#projects) {
      if (this.#projects.size <= this.#projectsMax) return;
      if (batch === this.#batch || batch === 0 || isInMotion) continue;
      this.#projects.delete(projectId);
    }
  }

  discard(): void {
    this.#projects.clear();
    this.#inMotion.clear();
    this.#isMotionLoaded = false;
    this.#closed.length = 0;
    this.#wanted.clear();
    this.#waiting = [];
    this.#startBatch();
  }

  #countWaiting({ projectId, partition, closed, minute, id, idHash }: WaitingLine): void {
    const activity = this.#projects.get(projectId);
    if (activity === undefined) throw new Error("cannot apply spikes: a loaded project is missing");
    this.#touch(activity);
    activity.partition = partition;
    activity.close(closed);
    activity.count(minute, id, idHash);
  }

  #closeMinutes(minutes: MinutesClosed): void {
    this.#closed[minutes.partition] = minutes.closed;
    if (!this.#isMotionLoaded || this.#waiting.length > 0) this.#waiting.push(minutes);
    this.#judge(minutes);
  }

  #judge({ partition, closed }: MinutesClosed): void {
    for (const activity of this.#touched) this.#follow(activity);
    for (const activity of this.#inMotion.values()) {
      if (activity.partition !== partition || !activity.moveTo(closed)) continue;
      this.#touch(activity);
      this.#follow(activity);
    }
  }

  #startBatch(): void {
    this.#hasMotionChanged = false;
    this.#touched = [];
    this.#last = undefined;
    this.#spikes = new Map();
    this.#outbox = [];
    this.#batch++;
  }

  #touch(activity: ProjectActivity): void {
    if (activity.batch === this.#batch) return;
    activity.batch = this.#batch;
    this.#touched.push(activity);
  }

  #follow(activity: ProjectActivity): void {
    const { projectId, isInMotion } = activity;
    if (this.#inMotion.has(projectId) === isInMotion) return;
    if (isInMotion) this.#inMotion.set(projectId, activity);
    else this.#inMotion.delete(projectId);
    this.#hasMotionChanged = true;
  }

  readonly #onSpike = (row: SpikeRow, change: SpikeChange): void => {
    this.#spikes.set(JSON.stringify([row.projectId, row.subject, row.startedAtMs]), row);
    if (change !== "went on") this.#outbox.push(spikeAnnouncement(this.#prefix, row, change));
  };
}
