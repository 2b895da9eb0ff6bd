// What the effects process counts. Counters are of commits that the database has taken, so nothing
// is counted that was rolled back. Gauges are read when somebody scrapes.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { lanes } from "../../../platform/nats/names.ts";
import { incidentKinds } from "../../stream/incident-kinds.ts";
import { linkOutcomes, rejectedReasons, usageClasses } from "../closed-sets.ts";
import type { Totals } from "../store/port.ts";
import { lagOf, type StreamStatus } from "../streams/lag.ts";
import type { Commit } from "../types.ts";
import type { EffectsWriter } from "../writer/effects-writer.ts";
import {
  type EffectsMetricName,
  type EffectsMetricRow,
  effectsMetricTable,
} from "./metric-table.ts";

type WriterMemory = EffectsWriter["memory"];

interface EffectsGauges {
  /** Whether events are being applied, and how far. */
  readonly status: () => Promise<{
    readonly reasons: readonly string[];
    readonly streams: readonly StreamStatus[];
  }>;
  /** Undefined while the database is not open. */
  readonly totals: () => Promise<Totals | undefined>;
  readonly waits: () => number;
  /** Undefined while nothing is applied. */
  readonly memory: () => WriterMemory | undefined;
}

type Labels = Readonly<Record<string, string>>;

const commitSecondsBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export class EffectsMetrics {
  readonly registry = new Registry();
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #events = this.#counter("penstock_effects_events_total");
  readonly #duplicates = this.#counter("penstock_effects_duplicates_total");
  readonly #frames = this.#counter("penstock_effects_frames_total");
  readonly #rejected = this.#counter("penstock_effects_rejected_total");
  readonly #incidents = this.#counter("penstock_effects_incidents_total");
  readonly #links = this.#counter("penstock_effects_links_total");
  readonly #commits = this.#counter("penstock_effects_commits_total");
  readonly #commitSeconds = new Histogram({
    ...headOf("penstock_effects_commit_seconds"),
    buckets: commitSecondsBounds,
    registers: [this.registry],
  });
  /** What the parts of a commit have added, by the values of labels; its end may never come. */
  readonly #parts = new Map<
    Counter,
    Map<string, { readonly labels: Labels; readonly by: number }>
  >();
  #partSeconds = 0;

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // A counter that appears only with its first failure gives no rate that shows this failure.
    this.#commits.inc({ outcome: "committed" }, 0);
    this.#commits.inc({ outcome: "failed" }, 0);
    for (const lane of lanes) {
      this.#duplicates.inc({ lane }, 0);
      this.#frames.inc({ lane }, 0);
      for (const usageClass of usageClasses) this.#events.inc({ lane, class: usageClass }, 0);
    }
    for (const reason of rejectedReasons) this.#rejected.inc({ reason }, 0);
    for (const kind of incidentKinds) this.#incidents.inc({ kind }, 0);
    for (const outcome of linkOutcomes) this.#links.inc({ outcome }, 0);
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  /** Counted with the last part of the commit. */
  part({ usage, frames, rejected, incidents, links }: Commit, seconds: number): void {
    this.#partSeconds += seconds;
    for (const { lane, class: usageClass, events, duplicates } of usage) {
      this.#add(this.#events, { lane, class: usageClass }, events);
      this.#add(this.#duplicates, { lane }, duplicates);
    }
    for (const lane of lanes) this.#add(this.#frames, { lane }, frames[lane]);
    for (const { reason } of rejected) this.#add(this.#rejected, { reason });
    for (const { kind } of incidents) this.#add(this.#incidents, { kind });
    for (const { outcome } of links) this.#add(this.#links, { outcome });
  }

  committed(commit: Commit, seconds: number): void {
    this.part(commit, seconds);
    this.#commits.inc({ outcome: "committed" });
    this.#commitSeconds.observe(this.#partSeconds);
    for (const [counter, sums] of this.#parts)
      for (const { labels, by } of sums.values()) counter.inc(labels, by);
    this.undone();
  }

  failed(): void {
    this.#commits.inc({ outcome: "failed" });
    this.undone();
  }

  undone(): void {
    this.#partSeconds = 0;
    this.#parts.clear();
  }

  #add(counter: Counter, labels: Labels, by = 1): void {
    let sums = this.#parts.get(counter);
    if (sums === undefined) {
      sums = new Map();
      this.#parts.set(counter, sums);
    }
    const key = Object.values(labels).join();
    const before = sums.get(key)?.by ?? 0;
    sums.set(key, { labels, by: before + by });
  }

  watch({ status, totals, waits, memory }: EffectsGauges): void {
    this.#gauge("penstock_effects_waits", (gauge) => gauge.set(waits()));
    this.#watchMemory(memory);
    // One question serves the gauges of one scrape.
    const state = once(status);
    this.#gauge("penstock_effects_ready", async (gauge) =>
      gauge.set((await state()).reasons.length === 0 ? 1 : 0),
    );
    const ofLanes = async (gauge: Gauge, read: (lane: StreamStatus[]) => number): Promise<void> => {
      const { streams } = await state();
      gauge.reset();
      for (const lane of lanes) {
        const own = streams.filter((stream) => stream.lane === lane);
        if (own.some(({ lastSequence }) => lastSequence !== undefined))
          gauge.set({ lane }, read(own));
      }
    };
    this.#gauge("penstock_effects_lag_messages", (gauge) =>
      ofLanes(gauge, (own) => lagOf(own).messages),
    );
    this.#gauge("penstock_effects_lag_seconds", (gauge) =>
      ofLanes(gauge, (own) => lagOf(own).seconds),
    );
    this.#watchTotals(once(totals));
  }

  #watchMemory(memory: () => WriterMemory | undefined): void {
    const of = (name: EffectsMetricName, read: (memory: WriterMemory) => number): void =>
      this.#gauge(name, (gauge) => {
        const held = memory();
        gauge.reset();
        if (held !== undefined) gauge.set(read(held));
      });
    of("penstock_effects_cache_bytes", ({ cacheBytes }) => cacheBytes);
    of("penstock_effects_frames_bytes", ({ framesBytes }) => framesBytes);
    of("penstock_effects_duplicates_bytes", ({ duplicatesBytes }) => duplicatesBytes);
    of(
      "penstock_effects_duplicates_window_minutes",
      ({ duplicatesCoveredMs }) => duplicatesCoveredMs / 60_000,
    );
  }

  #watchTotals(totals: () => Promise<Totals | undefined>): void {
    const of = (name: EffectsMetricName, read: (totals: Totals) => number): void =>
      this.#gauge(name, async (gauge) => {
        const found = await totals();
        gauge.reset();
        if (found !== undefined) gauge.set(read(found));
      });
    of("penstock_effects_persons", ({ persons }) => persons);
    of("penstock_effects_groups", ({ groups }) => groups);
    of("penstock_effects_open_spikes", ({ openSpikes }) => openSpikes);
    of("penstock_effects_incidents", ({ incidents }) => incidents);
    of("penstock_effects_rejected", ({ rejected }) => rejected);
  }

  #counter(name: EffectsMetricName): Counter {
    return new Counter({ ...headOf(name), registers: [this.registry] });
  }

  #gauge(name: EffectsMetricName, read: (gauge: Gauge) => Promise<void> | void): void {
    const registers = [this.registry];
    new Gauge({
      ...headOf(name),
      registers,
      collect: async function () {
        await read(this);
      },
    });
  }
}

function headOf(name: EffectsMetricName): { name: string; help: string; labelNames: string[] } {
  const { help, labels = [] }: EffectsMetricRow = effectsMetricTable[name];
  return { name, help, labelNames: [...labels] };
}

/** Callers of the same moment share one call. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= work().finally(() => {
      running = undefined;
    });
    return running;
  };
}
