// Merges the metrics of all workers into the metrics of one gateway. The counts of ended workers
// are added, because otherwise a restart would look like a reset of the counters. Metrics that
// describe a single process (process_*, nodejs_*) get the label `worker`.

import type { MetricSnapshot, Sample } from "../../platform/metrics/table.ts";
import { type MetricName, metricNames, metricTable } from "../admin/metrics/metric-table.ts";

type Rule = "sum" | "max" | "min";

const combine: Readonly<Record<Rule, (left: number, right: number) => number>> = {
  sum: (left, right) => left + right,
  max: Math.max,
  min: Math.min,
};

export class MergedMetrics {
  readonly #latest = new Map<number, Map<string, MetricSnapshot>>();
  readonly #ofEnded = new Map<string, readonly Sample[]>();

  update(worker: number, metrics: readonly MetricSnapshot[]): void {
    const known = this.#latest.get(worker) ?? new Map<string, MetricSnapshot>();
    for (const metric of metrics) known.set(metric.name, metric);
    this.#latest.set(worker, known);
  }

  ended(worker: number): void {
    for (const { name, values } of this.#latest.get(worker)?.values() ?? []) {
      if (isOwn(name) && metricTable[name].type !== "gauge") this.#addEnded(name, values);
    }
    this.#latest.delete(worker);
  }

  restarted(): void {
    this.#addEnded("penstock_worker_restarts_total", [{ labels: {}, value: 1 }]);
  }

  all(supervisor: readonly MetricSnapshot[]): MetricSnapshot[] {
    return [
      ...metricNames.flatMap((name) => this.#ownMetric(name)),
      ...this.#processMetrics(supervisor),
    ];
  }

  #addEnded(name: MetricName, values: readonly Sample[]): void {
    this.#ofEnded.set(name, merge("sum", [this.#ofEnded.get(name) ?? [], values]));
  }

  #ownMetric(name: MetricName): MetricSnapshot[] {
    const { type, help, ...row } = metricTable[name];
    const reported = [...this.#latest.values()].flatMap(
      (metrics) => metrics.get(name)?.values ?? [],
    );
    const rule = "across" in row ? row.across : "sum";
    const values = merge(rule, [this.#ofEnded.get(name) ?? [], reported]);
    if (type !== "gauge" || values.length > 0) return [{ name, type, help, values }];
    // If no worker reports the gauge, a sum or a minimum is 0. A maximum or an optional value is
    // unknown.
    return rule === "max" || "isOptional" in row
      ? []
      : [{ name, type, help, values: [{ labels: {}, value: 0 }] }];
  }

  #processMetrics(supervisor: readonly MetricSnapshot[]): MetricSnapshot[] {
    const byName = new Map<string, MetricSnapshot & { values: Sample[] }>();
    const add = (metrics: Iterable<MetricSnapshot>, worker: string): void => {
      for (const metric of metrics) {
        if (isOwn(metric.name)) continue;
        const merged = byName.get(metric.name) ?? { ...metric, values: [] };
        merged.values.push(
          ...metric.values.map((value) => ({ ...value, labels: { ...value.labels, worker } })),
        );
        byName.set(metric.name, merged);
      }
    };
    add(supervisor, "supervisor");
    for (const [worker, metrics] of this.#latest) add(metrics.values(), String(worker));
    return [...byName.values()];
  }
}

function isOwn(name: string): name is MetricName {
  return Object.hasOwn(metricTable, name);
}

function merge(rule: Rule, lists: readonly (readonly Sample[])[]): Sample[] {
  const series = new Map<string, Sample>();
  for (const sample of lists.flat()) {
    const key = `${sample.metricName ?? ""} ${JSON.stringify(sample.labels)}`;
    const before = series.get(key);
    const value = before === undefined ? sample.value : combine[rule](before.value, sample.value);
    series.set(key, { ...sample, value });
  }
  return [...series.values()];
}
