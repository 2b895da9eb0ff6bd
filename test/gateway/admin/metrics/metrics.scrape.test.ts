import { afterEach, describe, expect, test, vi } from "vitest";
import { metricNames, metricTable } from "../../../../src/gateway/admin/metrics/metric-table.ts";
import { Metrics } from "../../../../src/gateway/admin/metrics/metrics.ts";
import { version } from "../../../../src/platform/base/version.ts";

let metrics: Metrics;

afterEach(() => metrics.close());

function numberOf(text: string | undefined): number {
  return text === "+Inf" ? Number.POSITIVE_INFINITY : Number(text);
}

async function scrape(): Promise<Map<string, number>> {
  const series = new Map<string, number>();
  for (const line of (await metrics.text()).split("\n")) {
    if (line === "" || /^# (HELP|TYPE) [a-z_]\w* \S/.test(line)) continue;
    const match = /^([a-z_]\w*(?:\{[a-z_]\w*="[^"\\]*"(?:,[a-z_]\w*="[^"\\]*")*\})?) (\S+)$/i.exec(
      line,
    );
    // prom-client reports its own averages as NaN before the first measurement.
    const value =
      match?.[2]?.toLowerCase() === "nan" && !line.startsWith("penstock_")
        ? 0
        : numberOf(match?.[2]);
    if (match === null || Number.isNaN(value)) throw new Error(`Parse a scrape: ${line}`);
    expect(series.has(match[1]!), line).toBe(false);
    series.set(match[1]!, value);
  }
  return series;
}

describe("the metrics endpoint", () => {
  test("exports every metric with its type", async () => {
    metrics = new Metrics();
    metrics.watch({
      penstock_frames_unacked: () => 3,
      penstock_inflight_bytes: () => 70,
      penstock_inflight_bytes_max: () => 100,
    });
    metrics.watch({
      penstock_nats_connected: () => true,
      penstock_projects: () => 2,
      penstock_requests_inflight: () => 5,
    });
    metrics.watch({
      penstock_registry_in_doubt: () => false,
      penstock_projects_without_current_rules: () => 0,
      penstock_projects_over_share: () => 0,
      penstock_rule_events_total: () => [],
      penstock_schema_results_total: () => [],
    });
    metrics.watch({ penstock_tls_certificate_expiry_seconds: () => 1_900_000_000 });
    const labels = { lane: "live", partition: "0" };
    metrics.watch({
      penstock_connections_closed_early_total: () => [{ labels: { reason: "idle" }, value: 0 }],
    });
    metrics.watch({
      penstock_unread_answer_bytes: () => 0,
      penstock_unread_answers_reset_total: () => 0,
    });
    metrics.watch({
      penstock_connections: () => 1,
      penstock_connections_max: () => 2,
      penstock_connections_refused_total: () => [],
    });
    metrics.watch({
      penstock_stream_bytes: () => [{ labels, value: 8 }],
      penstock_stream_bytes_max: () => [{ labels, value: Number.POSITIVE_INFINITY }],
      penstock_streams_refused: () => 1,
      penstock_rejected_held_bytes: () => 0,
      penstock_rejected_stream_bytes: () => [{ labels: { partition: "0" }, value: 0 }],
      penstock_passed_inflight: () => 0,
      penstock_passed_kept_bytes: () => 0,
      penstock_otel_spans_total: () => [],
    });
    const text = await metrics.text();
    for (const name of metricNames)
      expect(text).toContain(`# TYPE ${name} ${metricTable[name].type}\n`);
    const own = [...text.matchAll(/^# TYPE (penstock_\w+)/gm)].map((match) => match[1]);
    expect(own.sort()).toEqual([...metricNames].sort());
    expect(text).toContain("# TYPE process_resident_memory_bytes gauge");
    const series = await scrape();
    expect(series.get("penstock_inflight_bytes")).toBe(70);
    expect(series.get(`penstock_build_info{version="${version}"}`)).toBe(1);
    expect(series.get("penstock_nats_connected")).toBe(1);
    expect(series.get('penstock_stream_bytes{lane="live",partition="0"}')).toBe(8);
    expect(series.get('penstock_stream_bytes_max{lane="live",partition="0"}')).toBe(
      Number.POSITIVE_INFINITY,
    );
    expect(() => metrics.watch({ penstock_frames_unacked: () => 4 })).toThrow(
      "already been registered",
    );
  });

  test("counts requests by route and status", async () => {
    metrics = new Metrics();
    metrics.requestFinished("capture", 200, 0.001, 400);
    metrics.requestFinished("capture", 200, 0.3, 5_000);
    metrics.requestFinished("batch", 503, 20, 2e7);
    metrics.requestFinished("other", 404, 0.0001, 9);
    metrics.problemAnswered("overloaded");
    metrics.requestAborted("body");
    const series = await scrape();
    expect(series.get('penstock_requests_total{route="capture",status="200"}')).toBe(2);
    expect(series.get('penstock_requests_total{route="batch",status="503"}')).toBe(1);
    expect(series.get('penstock_requests_total{route="other",status="404"}')).toBe(1);
    expect(series.get('penstock_requests_aborted_total{phase="body"}')).toBe(1);
    expect(series.get('penstock_problems_total{code="overloaded"}')).toBe(1);
    expect(series.get('penstock_requests_total{route="capture",status="503"}')).toBe(0);
    expect(series.get('penstock_problems_total{code="store_full"}')).toBe(0);
    const bucket = (le: string) =>
      series.get(`penstock_request_duration_seconds_bucket{route="capture",le="${le}"}`);
    expect([
      bucket("0.0005"),
      bucket("0.001"),
      bucket("0.25"),
      bucket("0.5"),
      bucket("+Inf"),
    ]).toEqual([0, 1, 1, 2, 2]);
    expect(series.get('penstock_request_duration_seconds_sum{route="capture"}')).toBeCloseTo(0.301);
    expect(series.get('penstock_request_duration_seconds_bucket{route="batch",le="10"}')).toBe(0);
    expect(series.get('penstock_request_duration_seconds_count{route="batch"}')).toBe(1);
    expect(series.get("penstock_request_body_bytes_count")).toBe(3);
    expect(series.get("penstock_request_body_bytes_sum")).toBe(20_005_400);
  });

  test("counts events by stream, outcome and reason", async () => {
    metrics = new Metrics();
    metrics.events("live", "none", 100);
    metrics.events("live", "duplicate", 7);
    metrics.events("live", "no_event", 2);
    metrics.events("historical", "no_distinct_id", 3);
    metrics.events("historical", "event_too_large", 4);
    metrics.warnings("invalid_uuid", 5);
    metrics.slowPathItems(6);
    metrics.distinctIdsCut(7);
    const series = await scrape();
    const events = (lane: string, outcome: string, reason: string) =>
      series.get(`penstock_events_total{lane="${lane}",outcome="${outcome}",reason="${reason}"}`);
    expect(events("live", "stored", "none")).toBe(100);
    expect(events("live", "duplicate", "duplicate")).toBe(7);
    expect(events("live", "dropped", "no_event")).toBe(2);
    expect(events("historical", "dropped", "no_distinct_id")).toBe(3);
    expect(events("historical", "error", "event_too_large")).toBe(4);
    expect(events("historical", "stored", "none")).toBe(0);
    expect(series.get('penstock_warnings_total{code="invalid_uuid"}')).toBe(5);
    expect(series.get("penstock_slow_path_items_total")).toBe(6);
    expect(series.get("penstock_distinct_ids_cut_total")).toBe(7);
  });

  test("counts the sent frames, events and bytes", async () => {
    metrics = new Metrics();
    metrics.frameSent("live", 3, 900);
    metrics.frameSent("historical", 5_000, 500_000);
    metrics.frameAcked("live", 0.004);
    metrics.frameRetried();
    metrics.ackFailed("timeout");
    metrics.duplicateFrame("historical", 5_000);
    const series = await scrape();
    expect(series.get('penstock_frames_total{lane="live"}')).toBe(1);
    expect(series.get("penstock_frame_events_sum")).toBe(5_003);
    expect(series.get('penstock_frame_events_bucket{le="2000"}')).toBe(1);
    expect(series.get("penstock_frame_bytes_count")).toBe(2);
    expect(series.get('penstock_ack_duration_seconds_bucket{lane="live",le="0.005"}')).toBe(1);
    expect(series.get("penstock_frame_retries_total")).toBe(1);
    expect(series.get('penstock_acks_failed_total{cause="timeout"}')).toBe(1);
    expect(series.get('penstock_duplicate_frames_total{lane="historical"}')).toBe(1);
    expect(series.get('penstock_duplicate_events_total{lane="historical"}')).toBe(5_000);
  });

  test("reports the event loop delay since the previous scrape", async () => {
    metrics = new Metrics();
    const max = async () => (await scrape()).get('penstock_event_loop_delay_seconds{stat="max"}')!;
    // Node misses a stall before the first tick of its timer.
    const elapsed = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    await vi.waitFor(async () => {
      await elapsed(50);
      const untilMs = performance.now() + 150;
      while (performance.now() < untilMs);
      await elapsed(30);
      expect(await max()).toBeGreaterThan(0.1);
    }, 10_000);
    await vi.waitFor(async () => expect(await max()).toBeLessThan(0.1));
  });
});
