// Detects the spikes of one project without a clock. The stored text does not depend on how lines
// were batched.

import type { SpikeRow } from "../types.ts";
import { History, type Limits, thresholdMin } from "./history.ts";
import { type HotIdCounter, HotIds } from "./hot-ids.ts";

const minuteMs = 60_000;
const quietMinutesToEnd = 5;
const pauseMinutes = 10;
const hotPerMinute = 6_000;
const formatVersion = 1;

export const projectSubject = "project";
const idMark = "id:";

/**
 * Returns the subject of a hot id. Adds the prefix `id:` if the id could be mistaken for another
 * subject.
 */
export function hotIdSubject(id: string): string {
  return id === projectSubject || id.startsWith(idMark) ? `${idMark}${id}` : id;
}

export type SpikeChange = "began" | "went on" | "ended";
type OnSpike = (row: SpikeRow, change: SpikeChange) => void;

interface OpenMinute {
  readonly minute: number;
  count: number;
  hot: HotIds | undefined;
}

interface HotSpike {
  readonly start: number;
  readonly peak: number;
  readonly events: number;
}

interface Spike extends HotSpike, Limits {
  readonly quiet: number;
  readonly quietEvents: number;
}

/** Calls `onSpike` in the order of the minutes for each spike that begins, continues or ends. */
export class ProjectActivity {
  readonly projectId: string;
  partition = 0;
  batch = 0;
  #history: History | undefined;
  #historyText: string | undefined;
  #open: OpenMinute[] = [];
  #lastAbove = 0;
  #noSpikeBefore = 0;
  #spike: Spike | undefined;
  #hotSpikes = new Map<string, HotSpike>();

  readonly #onSpike: OnSpike;

  constructor(projectId: string, onSpike: OnSpike) {
    this.projectId = projectId;
    this.#onSpike = onSpike;
  }

  static from(projectId: string, text: string, onSpike: OnSpike): ProjectActivity {
    const [version, partition, lastAbove, noSpikeBefore, spike, hotSpikes, open, ...history] =
      JSON.parse(text) as [
        ...[number, number, number, number],
        Spike | null,
        (readonly [string, HotSpike])[],
        (readonly [minute: number, count: number, hot: HotIdCounter[] | null])[],
        ...[since: number, next: number, minutes: number[], hours: number[]],
      ];
    if (version !== formatVersion)
      throw new Error(`cannot read a project's activity: unknown format ${version}`);
    const activity = new ProjectActivity(projectId, onSpike);
    const [since, next, minutes, hours] = history;
    activity.partition = partition;
    activity.#history = History.from({ since, next, minutes, hours });
    activity.#open = open.map(([minute, count, hot]) => {
      return { minute, count, hot: hot === null ? undefined : new HotIds(hot) };
    });
    activity.#lastAbove = lastAbove;
    activity.#noSpikeBefore = noSpikeBefore;
    activity.#spike = spike ?? undefined;
    activity.#hotSpikes = new Map(hotSpikes);
    return activity;
  }

  text(): string {
    this.#historyText ??= historyText(this.#history);
    const open = this.#open.map(({ minute, count, hot }) => [
      minute,
      count,
      hot?.counters() ?? null,
    ]);
    const rest = [formatVersion, this.partition, this.#lastAbove, this.#noSpikeBefore];
    const parts = [...rest, this.#spike ?? null, [...this.#hotSpikes], open];
    return `${JSON.stringify(parts).slice(0, -1)},${this.#historyText}]`;
  }

  get isInMotion(): boolean {
    if (this.#spike !== undefined || this.#lastAbove > 0 || this.#hotSpikes.size > 0) return true;
    return this.#open.some(({ count }) => count > thresholdMin);
  }

  close(closed: number): void {
    const history = this.#historyFrom(closed);
    if (history.next >= closed) return;
    while (history.next < closed && (this.#open.length > 0 || this.isInMotion))
      this.#judgeNext(history);
    history.skipTo(closed);
    this.#historyText = undefined;
  }

  /**
   * Counts an event. If its minute is closed, only the count of its hour changes. `idHash` is the
   * upper 32 bits of the hash of the id.
   */
  count(minute: number, distinctId: string, idHash: number): void {
    const history = this.#historyFrom(minute);
    if (minute < history.next) {
      history.addLate(minute, 1);
      this.#historyText = undefined;
      return;
    }
    const open = this.#openMinute(minute);
    open.count++;
    if (open.count <= thresholdMin) return;
    open.hot ??= new HotIds();
    open.hot.add(distinctId, idHash);
  }

  moveTo(closed: number): boolean {
    const history = this.#historyFrom(closed);
    const { next } = history;
    while (history.next < closed && this.isInMotion) this.#judgeNext(history);
    return history.next !== next;
  }

  #historyFrom(minute: number): History {
    this.#history ??= new History(minute);
    return this.#history;
  }

  #openMinute(minute: number): OpenMinute {
    for (const one of this.#open) if (one.minute === minute) return one;
    const opened = { minute, count: 0, hot: undefined };
    this.#open.push(opened);
    this.#open.sort((a, b) => a.minute - b.minute);
    return opened;
  }

  #judgeNext(history: History): void {
    const minute = history.next;
    const open = this.#open[0]?.minute === minute ? this.#open.shift() : undefined;
    const count = open?.count ?? 0;
    const hasLimits = count > thresholdMin || this.#spike !== undefined;
    const limits = hasLimits ? history.limits() : undefined;
    history.add(limits === undefined ? count : Math.min(count, limits.threshold));
    this.#historyText = undefined;
    if (limits !== undefined && this.#spike !== undefined)
      this.#goOn(this.#spike, { minute, count, threshold: limits.threshold });
    else this.#maybeBegin(minute, count, limits);
    this.#judgeHotIds(minute, open?.hot);
  }

  #maybeBegin(minute: number, count: number, limits: Limits | undefined): void {
    const before = this.#lastAbove;
    const isAbove = limits !== undefined && count > limits.threshold;
    this.#lastAbove = isAbove && minute >= this.#noSpikeBefore ? count : 0;
    if (limits === undefined || this.#lastAbove === 0 || before === 0) return;
    this.#lastAbove = 0;
    this.#spike = {
      start: minute - 1,
      ...limits,
      peak: Math.max(before, count),
      events: before + count,
      quiet: 0,
      quietEvents: 0,
    };
    this.#onSpike(this.#row(this.#spike, undefined), "began");
  }

  #goOn(spike: Spike, judged: { minute: number; count: number; threshold: number }): void {
    const { minute, count, threshold } = judged;
    if (count >= 0.75 * threshold) {
      const peak = Math.max(spike.peak, count);
      const events = spike.events + spike.quietEvents + count;
      this.#spike = { ...spike, peak, events, quiet: 0, quietEvents: 0 };
      this.#onSpike(this.#row(this.#spike, undefined), "went on");
      return;
    }
    const quiet = spike.quiet + 1;
    if (quiet < quietMinutesToEnd) {
      this.#spike = { ...spike, quiet, quietEvents: spike.quietEvents + count };
      return;
    }
    this.#spike = undefined;
    this.#noSpikeBefore = minute + 1 + pauseMinutes;
    this.#onSpike(this.#row(spike, minute + 1 - quietMinutesToEnd), "ended");
  }

  #row(spike: HotSpike & Limits, end: number | undefined): SpikeRow {
    return {
      projectId: this.projectId,
      subject: projectSubject,
      startedAtMs: spike.start * minuteMs,
      endedAtMs: end === undefined ? undefined : end * minuteMs,
      peakPerMinute: spike.peak,
      baseline: spike.baseline,
      threshold: spike.threshold,
      events: spike.events,
    };
  }

  #judgeHotIds(minute: number, hot: HotIds | undefined): void {
    const over = hot?.over(hotPerMinute) ?? new Map<string, number>();
    for (const [id, before] of this.#hotSpikes) {
      if (over.has(id)) continue;
      this.#hotSpikes.delete(id);
      this.#onSpike(this.#hotRow(id, before, minute), "ended");
    }
    for (const [id, count] of over) {
      const before = this.#hotSpikes.get(id);
      const spike = {
        start: before?.start ?? minute,
        peak: Math.max(before?.peak ?? 0, count),
        events: (before?.events ?? 0) + count,
      };
      this.#hotSpikes.set(id, spike);
      this.#onSpike(this.#hotRow(id, spike, undefined), before === undefined ? "began" : "went on");
    }
  }

  #hotRow(id: string, spike: HotSpike, end: number | undefined): SpikeRow {
    const limits = { baseline: 0, threshold: hotPerMinute };
    return { ...this.#row({ ...spike, ...limits }, end), subject: hotIdSubject(id) };
  }
}

function historyText(history: History | undefined): string {
  if (history === undefined)
    throw new Error("cannot store the activity of a project: it has no history");
  const { since, next, minutes, hours } = history.numbers();
  return JSON.stringify([since, next, minutes, hours]).slice(1, -1);
}

const hotSpikesAt = 5;

type Named = readonly [id: string, ...rest: unknown[]];

export function activityWithout(text: string, ids: ReadonlySet<string>): string {
  const parts = JSON.parse(text) as unknown[];
  const others = (some: readonly Named[]) => some.filter(([id]) => !ids.has(id));
  const [hotSpikes, open] = parts.slice(hotSpikesAt, hotSpikesAt + 2) as [
    readonly Named[],
    readonly (readonly [minute: number, count: number, hot: readonly Named[] | null])[],
  ];
  parts[hotSpikesAt] = others(hotSpikes);
  parts[hotSpikesAt + 1] = open.map(([minute, count, hot]) => [minute, count, hot && others(hot)]);
  return JSON.stringify(parts);
}
