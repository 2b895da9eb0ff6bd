// Every metric of the gateway, except prom-client's own metrics (process_*, nodejs_*). Tests
// compare the docs, the dashboard and the alerts with this table.

import { buildInfoTable, type MetricRow } from "../../../platform/metrics/table.ts";

type Across = "sum" | "max" | "min";
const counter = (help: string) => ({ type: "counter", help }) as const;
const histogram = (help: string) => ({ type: "histogram", help }) as const;
const gauge = (across: Across, help: string) => ({ type: "gauge", across, help }) as const;
const optionalGauge = (across: Across, help: string) =>
  ({ ...gauge(across, help), isOptional: true }) as const;

export const metricTable = {
  ...buildInfoTable,
  penstock_requests_total: counter(
    "Requests answered, by route and status. The routes flags, config, static, recordings, logs, features and page are other requests of SDKs and browsers; other is every unknown path.",
  ),
  penstock_problems_total: counter("Requests answered with an error, by its code."),
  penstock_request_duration_seconds: histogram(
    "Time from a request's head to its answer, by route.",
  ),
  penstock_request_body_bytes: histogram("Bytes of request bodies as received."),
  penstock_requests_aborted_total: counter(
    "Requests whose client disconnected before the answer, by phase: head, body, answer.",
  ),
  penstock_passed_requests_total: counter(
    "Requests for the upstream, by kind and outcome: passed (the upstream's answer), fresh (a fresh cached answer), kept (an older cached answer, while the upstream is unavailable), failed (503: the upstream is unavailable), full (503: too many requests in progress), gone (the client disconnected).",
  ),
  penstock_passed_inflight: optionalGauge(
    "sum",
    "Requests to the upstream that are in progress; absent without an upstream.",
  ),
  penstock_passed_kept_bytes: optionalGauge(
    "sum",
    "Bytes of the upstream's answers in the cache; absent without an upstream.",
  ),
  penstock_requests_inflight: gauge("sum", "Requests begun and not yet answered."),
  penstock_events_total: counter(
    "Events by lane, outcome (stored, duplicate, removed, filtered, dropped, error, refused, unknown) and reason.",
  ),
  penstock_warnings_total: counter("Warnings on stored events, by code."),
  penstock_rule_events_total: counter(
    "Events on which a rule had an effect, by project, rule, mode and effect (dropped, sampled_out, quarantined, changed). In the mode observe, the rule only counts them. A request that is sent again is counted again.",
  ),
  penstock_schema_results_total: counter(
    "Events that a schema checked, by project, name of the event, mode (observe, stamp, quarantine) and result (valid, invalid). A request that is sent again is counted again.",
  ),
  penstock_rejected_total: counter(
    "Rejected events that are retained for `penstock rejected`, by reason.",
  ),
  penstock_rejected_lost_total: counter(
    "Rejected events that are not retained, by cause: too_large, overflow (their project rejects too many at once, or NATS does not respond), store (JetStream did not acknowledge them).",
  ),
  penstock_rejected_held_bytes: optionalGauge(
    "sum",
    "Bytes of rejected events in memory; absent if PENSTOCK_REJECTED_BYTES is 0.",
  ),
  penstock_rejected_stream_bytes: optionalGauge(
    "max",
    "Bytes in a stream of rejected events, by partition; absent if PENSTOCK_REJECTED_BYTES is 0. A full stream discards its oldest items.",
  ),
  penstock_slow_path_items_total: counter(
    "Items that had to be normalised: escaped or repeated names, U+0000, lone surrogates.",
  ),
  penstock_distinct_ids_cut_total: counter(
    "Distinct ids of more than 400 characters, which were shortened.",
  ),
  penstock_frames_total: counter("Frames sent to JetStream, by lane; retries not counted."),
  penstock_frame_events: histogram("Events per frame."),
  penstock_frame_bytes: histogram("Payload bytes per frame."),
  penstock_atomic_batches_total: counter(
    "Atomic batches of frames, by outcome: stored, parted (not stored atomically; each frame was sent again alone).",
  ),
  penstock_atomic_batch_frames: histogram("Frames per atomic batch."),
  penstock_ack_duration_seconds: histogram(
    "Time from a frame's first send to its PubAck, by lane.",
  ),
  penstock_frame_retries_total: counter("Frames sent again, under the same message id."),
  penstock_acks_failed_total: counter(
    "Sends that no PubAck confirmed as stored, by cause; an atomic batch is one send.",
  ),
  penstock_duplicate_frames_total: counter("Frames that the stream already had, by lane."),
  penstock_duplicate_events_total: counter(
    "Events in frames that the stream already had, by lane.",
  ),
  penstock_stream_regressions_total: counter(
    "Losses of acknowledged messages by a stream, by lane and cause: cut_back (the stream ends at a lower sequence), made_anew (the stream was created again).",
  ),
  penstock_frames_unacked: gauge("sum", "Frames sent and not yet acknowledged."),
  penstock_connections: gauge("sum", "Connections open on the public port."),
  penstock_connections_max: gauge("sum", "Maximum number of open connections."),
  penstock_connections_refused_total: counter(
    "Connections closed as soon as they opened, by the exceeded limit: total, address.",
  ),
  penstock_connections_closed_early_total: counter(
    "Open connections closed early, by reason: newcomer (all connections were in use, and a new connection replaced it), idle (three quarters were in use).",
  ),
  penstock_unread_answer_bytes: gauge(
    "sum",
    "Bytes of unread answers in the kernel's buffers at the last check, at most a second ago.",
  ),
  penstock_unread_answers_reset_total: counter(
    "Connections reset because their clients did not read the answers.",
  ),
  penstock_inflight_bytes: gauge("sum", "Bytes in flight: bodies in memory, unacknowledged lines."),
  penstock_inflight_bytes_max: gauge(
    "sum",
    "The budget of bytes in flight; beyond it, requests get 503 overloaded.",
  ),
  penstock_nats_connected: gauge("min", "1 while NATS is connected, else 0."),
  penstock_stream_bytes: gauge(
    "max",
    "Bytes in a stream, by lane and partition; read every second or so.",
  ),
  penstock_stream_bytes_max: gauge("max", "Maximum bytes of a stream; +Inf without a limit."),
  penstock_streams_refused: gauge(
    "max",
    "Streams whose events are rejected, because they cannot guarantee that acknowledged events stay stored, or acknowledge nothing.",
  ),
  penstock_projects: gauge("max", "Projects known to this process."),
  penstock_registry_in_doubt: gauge(
    "max",
    "1 while the registry is missing, or lacks projects that were read earlier.",
  ),
  penstock_projects_without_current_rules: gauge(
    "max",
    "Projects whose current rules this process cannot use. It handles their events by the version before, or rejects them (503 unavailable).",
  ),
  penstock_projects_over_share: gauge(
    "max",
    "Projects whose events are rejected because they fill their share of a stream (503 project_full).",
  ),
  penstock_tls_certificate_expiry_seconds: optionalGauge(
    "min",
    "When the public port's certificate expires, in Unix time; absent without TLS.",
  ),
  penstock_workers: gauge("sum", "Processes that accept requests."),
  penstock_worker_restarts_total: counter("Workers started to replace one that died."),
  penstock_event_loop_delay_seconds: gauge(
    "max",
    "Delay of the event loop since the last scrape: p50, p99, max.",
  ),
  penstock_otel_spans_total: counter(
    "Spans by outcome: exported, failed (the receiver did not accept them), dropped (the queue was full). limited counts sampled requests beyond the limits per second, which get no span. No series unless traces are exported.",
  ),
} satisfies Record<string, MetricRow>;

export type MetricName = keyof typeof metricTable;

export const metricNames: readonly MetricName[] = Object.keys(metricTable) as MetricName[];
