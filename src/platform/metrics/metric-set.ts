// The metrics of one process: counters, gauges that are read at a scrape, and the page of a scrape.
// The table of the process defines names, types and help texts. Also converts metrics to plain
// values. A worker sends them to the process that exports the metrics of all workers on one page.

import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import { Histogram, LabeledCounters } from "./counters.ts";
import type { Labels, MetricRow, MetricSnapshot, Sample } from "./table.ts";

export const scrapeContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** A label and all its possible values. */
type Label<Value extends string> = readonly [name: string, values: readonly Value[]];

/** The metrics of a process. Each process extends the class with its own counters. */
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

  /** Returns the scrape as values. */
  snapshot(): Promise<MetricSnapshot[]> {
    return snapshotOf(this.#registry);
  }

  /**
   * Returns the counters and histograms of the table. Unlike a scrape this starts no new window of
   * a gauge, so it may be called at any time.
   */
  counts(): MetricSnapshot[] {
    return this.#counting.map((read) => read());
  }

  /** Creates a counter without labels. */
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

  /** Creates a histogram for each value of a label. */
  protected histograms<Value extends string>(
    name: Name,
    bounds: readonly number[],
    [label, values]: Label<Value>,
  ): Readonly<Record<Value, Histogram>> {
    const each = values.map((value) => [value, new Histogram(bounds, { [label]: value })] as const);
    this.show(name, () => each.flatMap(([, histogram]) => histogram.samples(name)));
    return Object.fromEntries(each) as Record<Value, Histogram>;
  }

  /**
   * Exports the result of `read` at each scrape. A metric that is never registered is absent from
   * the page. Throws if a metric is registered twice, because that is a bug.
   */
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
  // The declared type of `type` is a numeric enum. At run time it is the word of the text format.
  const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricSnapshot[];
  return metrics.map(({ name, type, help, values }) => ({ name, type, help, values }));
}

/** Returns the metrics in the Prometheus text format. */
export async function scrapeText(metrics: readonly MetricSnapshot[]): Promise<string> {
  const registry = new Registry();
  for (const metric of metrics) register(registry, metric.name, () => metric);
  return await registry.metrics();
}

/**
 * Registers Node's own metrics of this process, for a process without other metrics. Returns a
 * function that reads them.
 */
export function watchProcess(): () => Promise<MetricSnapshot[]> {
  const metrics = new MetricSet({});
  return () => metrics.snapshot();
}

/**
 * Registers a metric. A registry uses only `name` and `get()` of a metric, but its declared type is
 * the union of its own classes, hence the cast.
 */
function register(registry: Registry, name: string, read: () => MetricSnapshot): void {
  const metric = { name, get: () => Promise.resolve({ ...read(), aggregator: "sum" }) };
  registry.registerMetric(metric as unknown as Metric);
}
