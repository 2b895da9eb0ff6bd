// Turns metrics into plain values and back, because a worker sends them to the process that shows
// all of them on one page. It knows prom-client's registry, and nothing of what the numbers mean.

import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { MetricSnapshot } from "../../../platform/base/sample.ts";

export const scrapeContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** Everything a scrape of the registry would show. */
export async function snapshotOf(registry: Registry): Promise<MetricSnapshot[]> {
  // The declared type of `type` is a numeric enum; at run time it is the word of the text format.
  const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricSnapshot[];
  return metrics.map(({ name, type, help, values }) => ({ name, type, help, values }));
}

/** The Prometheus text format. */
export async function scrapeText(metrics: readonly MetricSnapshot[]): Promise<string> {
  const registry = new Registry();
  for (const metric of metrics) register(registry, metric.name, () => metric);
  return await registry.metrics();
}

/** Node's own metrics of this process, for a process that has no other metrics. */
export function watchProcess(): () => Promise<MetricSnapshot[]> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return () => snapshotOf(registry);
}

/**
 * A registry uses only `name` and `get()` of a metric. Its declared type is the union of its own
 * classes, hence the cast.
 */
export function register(registry: Registry, name: string, read: () => MetricSnapshot): void {
  const metric = { name, get: () => Promise.resolve({ ...read(), aggregator: "sum" }) };
  registry.registerMetric(metric as unknown as Metric);
}
