// The metrics of one process, described by its table. Also converts them to plain values, which a
// worker sends to the process that exports the metrics of all workers.

import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import { Histogram, LabeledCounters } from "./counters.ts";
import type { Labels, MetricRow, MetricSnapshot, Sample } from "./table.ts";

export const scrapeContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

type Label<Value extends string> = readonly [name: string, values: readonly Value[]];

/** Each process extends the class with its own counters. */
export class MetricSet<Name extends string> {
  readonly contentType = scrapeContentType;
  readonly #table: Readonly<Record<Name, MetricRow>>;
  readonly #registry = new Registry();
  readonly #counting: (() => MetricSnapshot)[] = [];

  constructor(table: Readonly<Record<Name, MetricRow>>) {
    this.#table = table;
    collectDefaultMetrics({ register: this.#registry });
  }

  /** Returns the scrape in the Prometheus text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  snapshot(): Promise<MetricSnapshot[]> {
    return snapshotOf(this.#registry);
  }

  /** Returns the counters and histograms. Unlike a scrape, it starts no new window of a gauge. */
  counts(): MetricSnapshot[] {
    return this.#counting.map((read) => read());
  }

  protected counter(name: Name): LabeledCounters<"", ""> {
    return this.tally(name, ["", [""]]);
  }

  /** Creates a counter for each value of a label, or for each pair of values of two labels. */
  protected tally<First extends string, Second extends string = "">(
    name: Name,
    [label, first]: Label<First>,
    [other, second]: Label<Second> = ["", ["" as Second]],
  ): LabeledCounters<First, Second> {
    const labels = (one: First, two: Second): Labels => ({
      ...(label === "" ? {} : { [label]: one }),
      ...(other === "" ? {} : { [other]: two }),
    });
    const tally = new LabeledCounters(first, second, labels);
    this.show(name, () => tally.samples());
    return tally;
  }

  protected histogram(name: Name, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(bounds);
    this.show(name, () => histogram.samples(name));
    return histogram;
  }

  protected histograms<Value extends string>(
    name: Name,
    bounds: readonly number[],
    [label, values]: Label<Value>,
  ): Readonly<Record<Value, Histogram>> {
    const each = values.map((value) => [value, new Histogram(bounds, { [label]: value })] as const);
    this.show(name, () => each.flatMap(([, histogram]) => histogram.samples(name)));
    return Object.fromEntries(each) as Record<Value, Histogram>;
  }

  /** Exports the result of `read` at each scrape. Throws if a metric is registered twice. */
  protected show(name: Name, read: () => number | boolean | Sample[]): void {
    const { type, help } = this.#table[name];
    const snapshot = () => ({ name, type, help, values: samplesOf(read()) });
    register(this.#registry, name, snapshot);
    if (type !== "gauge") this.#counting.push(snapshot);
  }
}

function samplesOf(read: number | boolean | Sample[]): Sample[] {
  return typeof read === "object" ? read : [{ labels: {}, value: Number(read) }];
}

async function snapshotOf(registry: Registry): Promise<MetricSnapshot[]> {
  // `type` is declared as a numeric enum, but is the word of the text format at run time.
  const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricSnapshot[];
  return metrics.map(({ name, type, help, values }) => ({ name, type, help, values }));
}

export async function scrapeText(metrics: readonly MetricSnapshot[]): Promise<string> {
  const registry = new Registry();
  for (const metric of metrics) register(registry, metric.name, () => metric);
  return await registry.metrics();
}

/**
 * Registers Node's own metrics for a process without other metrics. Returns a function that reads
 * them.
 */
export function watchProcess(): () => Promise<MetricSnapshot[]> {
  const metrics = new MetricSet({});
  return () => metrics.snapshot();
}

/**
 * A registry uses only `name` and `get()` of a metric, but its declared type is the union of its
 * own classes.
 */
function register(registry: Registry, name: string, read: () => MetricSnapshot): void {
  const metric = { name, get: () => Promise.resolve({ ...read(), aggregator: "sum" }) };
  registry.registerMetric(metric as unknown as Metric);
}
