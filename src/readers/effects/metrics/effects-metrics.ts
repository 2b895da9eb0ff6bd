// The Prometheus metrics of the effects process. Counters exclude commits that were rolled back.

import { MetricSet } from "../../../platform/metrics/metric-set.ts";
import { buildInfo, type Sample } from "../../../platform/metrics/table.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { incidentKinds } from "../../stream/resume.ts";
import type { Totals } from "../store/port.ts";
import { lagOf, type StreamStatus } from "../streams/lag.ts";
import { type Commit, linkOutcomes, rejectedReasons, usageClasses } from "../types.ts";
import type { EffectsWriter } from "../writer/effects-writer.ts";
import { type EffectsMetricName, effectsMetricTable } from "./metric-table.ts";

type WriterMemory = EffectsWriter["memory"];

interface EffectsGauges {
  readonly status: () => Promise<{
    readonly reasons: readonly string[];
    readonly streams: readonly StreamStatus[];
  }>;
  readonly totals: () => Promise<Totals | undefined>;
  readonly waits: () => number;
  readonly memory: () => WriterMemory | undefined;
}

const commitSecondsBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export class EffectsMetrics extends MetricSet<EffectsMetricName> {
  readonly #events = this.tally(
    "penstock_effects_events_total",
    ["lane", lanes],
    ["class", usageClasses],
  );
  readonly #duplicates = this.tally("penstock_effects_duplicates_total", ["lane", lanes]);
  readonly #frames = this.tally("penstock_effects_frames_total", ["lane", lanes]);
  readonly #rejected = this.tally("penstock_effects_rejected_total", ["reason", rejectedReasons]);
  readonly #incidents = this.tally("penstock_effects_incidents_total", ["kind", incidentKinds]);
  readonly #links = this.tally("penstock_effects_links_total", ["outcome", linkOutcomes]);
  readonly #commits = this.tally("penstock_effects_commits_total", [
    "outcome",
    ["committed", "failed"],
  ]);
  readonly #commitSeconds = this.histogram("penstock_effects_commit_seconds", commitSecondsBounds);
  readonly #ofCommit = [
    this.#events,
    this.#duplicates,
    this.#frames,
    this.#rejected,
    this.#incidents,
    this.#links,
  ];
  #partSeconds = 0;
  #gauges: EffectsGauges | undefined;
  #state: Awaited<ReturnType<EffectsGauges["status"]>> = { reasons: [], streams: [] };
  #totals: Totals | undefined;

  constructor() {
    super(effectsMetricTable);
    this.show("penstock_build_info", () => buildInfo);
  }

  protected override async refresh(): Promise<void> {
    if (this.#gauges === undefined) return;
    const { status, totals } = this.#gauges;
    [this.#state, this.#totals] = await Promise.all([status(), totals()]);
  }

  part({ usage, frames, rejected, incidents, links }: Commit, seconds: number): void {
    this.#partSeconds += seconds;
    for (const { lane, class: usageClass, events, duplicates } of usage) {
      this.#events.hold(events, lane, usageClass);
      this.#duplicates.hold(duplicates, lane);
    }
    for (const lane of lanes) this.#frames.hold(frames[lane], lane);
    for (const { reason } of rejected) this.#rejected.hold(1, reason);
    for (const { kind } of incidents) this.#incidents.hold(1, kind);
    for (const { outcome } of links) this.#links.hold(1, outcome);
  }

  committed(commit: Commit, seconds: number): void {
    this.part(commit, seconds);
    this.#commits.add(1, "committed");
    this.#commitSeconds.observe(this.#partSeconds);
    for (const tally of this.#ofCommit) tally.settle();
    this.undone();
  }

  failed(): void {
    this.#commits.add(1, "failed");
    this.undone();
  }

  undone(): void {
    this.#partSeconds = 0;
    for (const tally of this.#ofCommit) tally.drop();
  }

  watch(gauges: EffectsGauges): void {
    this.#gauges = gauges;
    this.show("penstock_effects_waits", () => gauges.waits());
    this.show("penstock_effects_ready", () => this.#state.reasons.length === 0);
    this.show("penstock_effects_lag_messages", () => this.#lags("messages"));
    this.show("penstock_effects_lag_seconds", () => this.#lags("seconds"));
    const memory = (name: EffectsMetricName, of: keyof WriterMemory, unit = 1): void =>
      this.show(name, () => (gauges.memory()?.[of] ?? 0) / unit);
    memory("penstock_effects_cache_bytes", "cacheBytes");
    memory("penstock_effects_frames_bytes", "framesBytes");
    memory("penstock_effects_duplicates_bytes", "duplicatesBytes");
    memory("penstock_effects_duplicates_window_minutes", "duplicatesCoveredMs", 60_000);
    const total = (name: EffectsMetricName, of: keyof Totals): void =>
      this.show(name, () => this.#totals?.[of] ?? 0);
    total("penstock_effects_persons", "persons");
    total("penstock_effects_groups", "groups");
    total("penstock_effects_open_spikes", "openSpikes");
    total("penstock_effects_incidents", "incidents");
    total("penstock_effects_rejected", "rejected");
  }

  #lags(unit: "messages" | "seconds"): Sample[] {
    return lanes.flatMap((lane) => {
      const own = this.#state.streams.filter((stream) => stream.lane === lane);
      return own.some(({ lastSequence }) => lastSequence !== undefined)
        ? [{ labels: { lane }, value: lagOf(own)[unit] }]
        : [];
    });
  }
}
