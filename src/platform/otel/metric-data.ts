// Converts metrics to the format of OpenTelemetry. The names and labels are the same as at
// /metrics.

import { type Attributes, type HrTime, ValueType } from "@opentelemetry/api";
import { millisToHrTime } from "@opentelemetry/core";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
} from "@opentelemetry/sdk-metrics";
import type { MetricSnapshot, Sample } from "../metrics/table.ts";

/** The period of the counts, in milliseconds since the epoch. All counters were 0 at `startMs`. */
interface CoveredTime {
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Converts the metrics. Values that are not finite are omitted, because they represent a gauge
 * without a value.
 */
export function metricData(metrics: readonly MetricSnapshot[], time: CoveredTime): MetricData[] {
  const startTime = millisToHrTime(time.startMs);
  const endTime = millisToHrTime(time.endMs);
  return metrics.flatMap(({ name, type, help, values }): MetricData[] => {
    const common = {
      descriptor: { name, description: help, unit: "", valueType: ValueType.DOUBLE },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
    };
    const points = (): DataPoint<number>[] =>
      values
        .filter(({ value }) => Number.isFinite(value))
        .map(({ labels, value }) => ({ startTime, endTime, attributes: labels, value }));
    if (type === "gauge")
      return [{ ...common, dataPointType: DataPointType.GAUGE, dataPoints: points() }];
    if (type === "counter")
      return [
        { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: points() },
      ];
    if (type !== "histogram") return [];
    const dataPoints = histograms(name, values, { startTime, endTime });
    return [{ ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints }];
  });
}

interface Series {
  readonly attributes: Attributes;
  readonly boundaries: number[];
  readonly counts: number[];
  sum: number;
}

function histograms(
  name: string,
  samples: readonly Sample[],
  times: { readonly startTime: HrTime; readonly endTime: HrTime },
): DataPoint<Histogram>[] {
  const byLabels = new Map<string, Series>();
  for (const { metricName, labels, value } of samples) {
    const { le, ...attributes } = labels;
    const key = JSON.stringify(attributes);
    const series = byLabels.get(key) ?? { attributes, boundaries: [], counts: [], sum: 0 };
    byLabels.set(key, series);
    if (metricName === `${name}_sum`) series.sum = value;
    if (metricName !== `${name}_bucket`) continue;
    series.counts.push(value);
    if (le !== "+Inf") series.boundaries.push(Number(le));
  }
  return [...byLabels.values()].map(({ attributes, boundaries, counts, sum }) => ({
    ...times,
    attributes,
    value: {
      buckets: { boundaries, counts: counts.map((count, at) => count - (counts[at - 1] ?? 0)) },
      count: counts.at(-1) ?? 0,
      sum,
    },
  }));
}
