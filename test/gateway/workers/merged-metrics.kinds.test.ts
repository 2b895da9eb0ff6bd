import { describe, expect, test } from "vitest";
import { MergedMetrics } from "../../../src/gateway/workers/merged-metrics.ts";
import type { MetricSnapshot, Sample } from "../../../src/platform/metrics/table.ts";

function metric(name: string, ...values: Sample[]): MetricSnapshot {
  return { name, type: "any", help: "Any.", values };
}

function plain(value: number, labels: Record<string, string> = {}): Sample {
  return { labels, value };
}

function valuesOf(metrics: MetricSnapshot[], name: string): Sample[] | undefined {
  return metrics.find((found) => found.name === name)?.values as Sample[] | undefined;
}

describe("the metrics of several workers", () => {
  test("sum counters and histograms, including values of ended workers", () => {
    const merged = new MergedMetrics();
    const bucket = (value: number) => ({
      metricName: "penstock_frame_events_bucket",
      labels: { le: "1" },
      value,
    });
    merged.update(0, [
      metric("penstock_frames_total", plain(3, { lane: "live" })),
      metric("penstock_frame_events", bucket(2)),
    ]);
    merged.update(1, [
      metric("penstock_frames_total", plain(4, { lane: "live" })),
      metric("penstock_frame_events", bucket(5)),
    ]);
    const frames = () => valuesOf(merged.all([]), "penstock_frames_total");
    expect(frames()).toEqual([plain(7, { lane: "live" })]);
    merged.update(0, [metric("penstock_frames_total", plain(5, { lane: "live" }))]);
    merged.ended(0);
    expect(frames()).toEqual([plain(9, { lane: "live" })]);
    merged.update(0, [metric("penstock_frames_total", plain(1, { lane: "live" }))]);
    merged.ended(0);
    merged.ended(1);
    expect(frames()).toEqual([plain(10, { lane: "live" })]);
    expect(valuesOf(merged.all([]), "penstock_frame_events")).toEqual([bucket(7)]);
    merged.restarted();
    merged.restarted();
    expect(valuesOf(merged.all([]), "penstock_worker_restarts_total")).toEqual([plain(2)]);
  });

  test("use the sum, minimum or maximum of gauges", () => {
    const merged = new MergedMetrics();
    for (const [worker, value] of [0, 1].entries()) {
      merged.update(worker, [
        metric("penstock_inflight_bytes", plain(10 + value)),
        metric("penstock_nats_connected", plain(value)),
        metric("penstock_projects", plain(7 + value)),
        metric("penstock_tls_certificate_expiry_seconds", plain(100 + value)),
        metric("penstock_event_loop_delay_seconds", plain(0.5 - value / 10, { stat: "max" })),
      ]);
    }
    const gauges = () =>
      [
        "inflight_bytes",
        "nats_connected",
        "projects",
        "event_loop_delay_seconds",
        "tls_certificate_expiry_seconds",
      ].map((name) => valuesOf(merged.all([]), `penstock_${name}`)?.[0]?.value);
    expect(gauges()).toEqual([21, 0, 8, 0.5, 100]);
    merged.ended(0);
    expect(gauges()).toEqual([11, 1, 8, 0.4, 101]);
    merged.ended(1);
    expect(gauges()).toEqual([0, 0, undefined, undefined, undefined]);
  });

  test("have a worker label if they describe a single process", () => {
    const merged = new MergedMetrics();
    merged.update(0, [
      metric("process_open_fds", plain(20)),
      metric("nodejs_gc_runs", plain(1, { kind: "minor" })),
    ]);
    merged.update(1, [metric("process_open_fds", plain(30))]);
    const all = merged.all([metric("process_open_fds", plain(10))]);
    expect(valuesOf(all, "process_open_fds")).toEqual([
      plain(10, { worker: "supervisor" }),
      plain(20, { worker: "0" }),
      plain(30, { worker: "1" }),
    ]);
    expect(valuesOf(all, "nodejs_gc_runs")).toEqual([plain(1, { kind: "minor", worker: "0" })]);
  });
});
