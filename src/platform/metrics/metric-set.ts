// The metrics of one process, described by a table. With several workers, each worker sends its
// metrics as plain values to the process that exports them.

import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { Labels, MetricRow, MetricSnapshot, Sample } from "./table.ts";

export const scrapeContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

type Label<Value extends string> = readonly [name: string, values: readonly Value[]];

export class MetricSet<Name extends string> {
  readonly contentType = scrapeContentType;
  readonly #table: Readonly<Record<Name, MetricRow>>;
  readonly #registry = new Registry();
  readonly #counting: (() => MetricSnapshot)[] = [];

  constructor(table: Readonly<Record<Name, MetricRow>>) {
    this.#table = table;
    collectDefaultMetrics({ register: this.#registry });
  }

  async text(): Promise<string> {
    await this.refresh();
    return await this.#registry.metrics();
  }

  async snapshot(): Promise<MetricSnapshot[]> {
    await this.refresh();
    return await snapshotOf(this.#registry);
  }

  protected async refresh(): Promise<void> {}

  counts(): MetricSnapshot[] {
    return this.#counting.map((read) => read());
  }

  protected counter(name: Name): LabeledCounters<"", ""> {
    return this.tally(name, ["", [""]]);
  }

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

  protected show(name: Name, read: () => number | boolean | readonly Sample[]): void {
    const { type, help } = this.#table[name];
    const snapshot = () => ({ name, type, help, values: samplesOf(read()) });
    register(this.#registry, name, snapshot);
    if (type !== "gauge") this.#counting.push(snapshot);
  }
}

function samplesOf(read: number | boolean | readonly Sample[]): readonly Sample[] {
  return typeof read === "object" ? read : [{ labels: {}, value: Number(read) }];
}

async function snapshotOf(registry: Registry): Promise<MetricSnapshot[]> {
  // TypeScript declares `type` as an enum. At run time, it is a string such as "counter".
  const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricSnapshot[];
  return metrics.map(({ name, type, help, values }) => ({ name, type, help, values }));
}

export async function scrapeText(metrics: readonly MetricSnapshot[]): Promise<string> {
  const registry = new Registry();
  for (const metric of metrics) register(registry, metric.name, () => metric);
  return await registry.metrics();
}

export function watchProcess(): () => Promise<MetricSnapshot[]> {
  const metrics = new MetricSet({});
  return () => metrics.snapshot();
}

function register(registry: Registry, name: string, read: () => MetricSnapshot): void {
  const metric = { name, get: () => Promise.resolve({ ...read(), aggregator: "sum" }) };
  registry.registerMetric(metric as unknown as Metric);
}

/**
 * Counts each combination of the values of up to two labels. All series exist from the start with
 * the value 0. Otherwise, a rate would not show the first failure.
 */
export class LabeledCounters<First extends string = string, Second extends string = string> {
  readonly #first: Readonly<Record<string, number>>;
  readonly #second: Readonly<Record<string, number>>;
  readonly #width: number;
  readonly #labels: readonly Labels[];
  readonly #counts: Float64Array;
  readonly #held: Float64Array;

  constructor(
    first: readonly First[],
    second: readonly Second[],
    labels: (first: First, second: Second) => Labels,
  ) {
    this.#first = indexOf(first);
    this.#second = indexOf(second);
    this.#width = second.length;
    this.#labels = first.flatMap((one) => second.map((other) => labels(one, other)));
    this.#counts = new Float64Array(this.#labels.length);
    this.#held = new Float64Array(this.#labels.length);
  }

  add(count: number, first: First | "" = "", second: Second | "" = ""): void {
    this.#counts[this.#first[first]! * this.#width + this.#second[second]!]! += count;
  }

  hold(count: number, first: First | "" = "", second: Second | "" = ""): void {
    this.#held[this.#first[first]! * this.#width + this.#second[second]!]! += count;
  }

  settle(): void {
    for (const [index, count] of this.#held.entries()) this.#counts[index]! += count;
    this.drop();
  }

  drop(): void {
    this.#held.fill(0);
  }

  samples(): Sample[] {
    return this.#labels.map((labels, index) => ({ labels, value: this.#counts[index]! }));
  }
}

function indexOf(values: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(values.map((value, index) => [value, index]));
}

export class Histogram {
  readonly #bounds: readonly number[];
  readonly #labels: Labels;
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[], labels: Labels = {}) {
    this.#bounds = bounds;
    this.#labels = labels;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.#counts[bucket]! += 1;
    this.#sum += value;
  }

  samples(name: string): Sample[] {
    const labels = this.#labels;
    const samples: Sample[] = [];
    let count = 0;
    for (const [bucket, own] of this.#counts.entries()) {
      count += own;
      const le = String(this.#bounds[bucket] ?? "+Inf");
      samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count });
    }
    samples.push({ metricName: `${name}_sum`, labels, value: this.#sum });
    samples.push({ metricName: `${name}_count`, labels, value: count });
    return samples;
  }
}
