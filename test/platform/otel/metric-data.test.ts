import { AggregationTemporality, DataPointType } from "@opentelemetry/sdk-metrics";
import { expect, test } from "vitest";
import { Histogram } from "../../../src/platform/metrics/metric-set.ts";
import { metricData } from "../../../src/platform/otel/metric-data.ts";

const time = { startMs: 1_000, endMs: 3_500 };
const times = { startTime: [1, 0], endTime: [3, 500_000_000] };

test("counters and gauges keep their names, labels and values", () => {
  const values = [
    { labels: { lane: "live" }, value: 3 },
    { labels: { lane: "historical" }, value: 0 },
  ];
  const [counter, gauge] = metricData(
    [
      { name: "events_total", type: "counter", help: "Events.", values },
      { name: "depth", type: "gauge", help: "Depth.", values },
    ],
    time,
  );
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: labels, value }));
  expect(counter).toMatchObject({
    descriptor: { name: "events_total", description: "Events.", unit: "" },
    dataPointType: DataPointType.SUM,
    isMonotonic: true,
    dataPoints,
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  });
  expect(gauge).toMatchObject({ dataPointType: DataPointType.GAUGE, dataPoints });
});

test("a histogram has the number of values in each bucket", () => {
  const live = new Histogram([1, 10], { lane: "live" });
  for (const value of [0.5, 1, 7, 100, 200]) live.observe(value);
  const empty = new Histogram([1, 10], { lane: "historical" });
  const values = [live, empty].flatMap((histogram) => histogram.samples("seconds"));
  const [data] = metricData([{ name: "seconds", type: "histogram", help: "", values }], time);
  expect(data?.dataPoints).toEqual([
    {
      ...times,
      attributes: { lane: "live" },
      value: { buckets: { boundaries: [1, 10], counts: [2, 1, 2] }, count: 5, sum: 308.5 },
    },
    {
      ...times,
      attributes: { lane: "historical" },
      value: { buckets: { boundaries: [1, 10], counts: [0, 0, 0] }, count: 0, sum: 0 },
    },
  ]);
});

test("summaries and gauges without a finite value are omitted", () => {
  const values = [Number.NaN, Number.POSITIVE_INFINITY].map((value) => ({ labels: {}, value }));
  const data = metricData(
    [
      { name: "limit", type: "gauge", help: "", values },
      { name: "quantiles", type: "summary", help: "", values: [{ labels: {}, value: 1 }] },
    ],
    time,
  );
  expect(data.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints])).toEqual([
    ["limit", []],
  ]);
});
