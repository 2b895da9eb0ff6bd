// The dashboard rows about requests and events. Thresholds are those of the alerts.

import { type Row, stat, timeSeries } from "./panels.ts";
import { of, quantiles, sumRate } from "./queries.ts";

const endpoints = 'route=~"capture|batch|e|i_v0_e|track|engage|v1"';
const fullestStream = `max(${of("penstock_stream_bytes")} / ${of("penstock_stream_bytes_max")})`;

export const requestRows: readonly Row[] = [
  {
    title: "At a glance",
    panels: [
      stat({
        title: "Alerts firing",
        description: "Penstock's alerts that are firing. deploy/runbook.md has the actions.",
        unit: "short",
        queries: [
          {
            expr: 'count(ALERTS{alertstate="firing",alertname=~"Penstock.*",job=~"$job"}) or vector(0)',
            legend: "",
          },
        ],
        thresholds: [{ from: 1, color: "red" }],
      }),
      stat({
        title: "Gateways up",
        description: "Gateways that respond to Prometheus.",
        unit: "short",
        queries: [{ expr: `sum(${of("up")})`, legend: "" }],
        thresholds: [{ from: 1, color: "green" }],
        baseColor: "red",
      }),
      stat({
        title: "NATS",
        description: "1 if every selected gateway is connected to NATS.",
        unit: "short",
        queries: [{ expr: `min(${of("penstock_nats_connected")})`, legend: "" }],
        thresholds: [{ from: 1, color: "green" }],
        baseColor: "red",
      }),
      stat({
        title: "Events stored",
        description: "Events acknowledged by JetStream, per second.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_events_total", "", 'outcome="stored"'), legend: "" }],
        baseColor: "text",
      }),
      stat({
        title: "Rejected",
        description:
          "Share of requests with a 503 among those that could be stored. Clients retry these.",
        unit: "percentunit",
        decimals: 2,
        queries: [
          {
            expr: `${sumRate("penstock_requests_total", "", `${endpoints},status=~"5.."`)} / ${sumRate("penstock_requests_total", "", `${endpoints},status=~"2..|5.."`)}`,
            legend: "",
          },
        ],
        thresholds: [
          { from: 0.001, color: "orange" },
          { from: 0.0144, color: "red" },
        ],
      }),
      stat({
        title: "Budget burn, 1 h",
        description:
          "Rate of 503 responses in the last hour, relative to the rate that the objective allows (99.9 % over 30 days). 14.4 pages.",
        unit: "short",
        decimals: 1,
        queries: [
          {
            expr: 'max(job:penstock_requests_refused:ratio_rate1h{job=~"$job"}) / 0.001',
            legend: "",
          },
        ],
        thresholds: [
          { from: 1, color: "orange" },
          { from: 14.4, color: "red" },
        ],
      }),
      stat({
        title: "Request p99",
        description: "From a request's head to its response, all endpoints.",
        unit: "s",
        queries: [
          {
            expr: `histogram_quantile(0.99, ${sumRate("penstock_request_duration_seconds_bucket", "le", endpoints)})`,
            legend: "",
          },
        ],
        thresholds: [
          { from: 1, color: "orange" },
          { from: 5, color: "red" },
        ],
      }),
      stat({
        title: "Fullest stream",
        description: "A full stream rejects its events (503 store_full).",
        unit: "percentunit",
        queries: [{ expr: fullestStream, legend: "" }],
        thresholds: [
          { from: 0.8, color: "orange" },
          { from: 0.9, color: "red" },
        ],
      }),
    ],
  },
  {
    title: "Traffic",
    panels: [
      timeSeries({
        title: "Requests by endpoint",
        description:
          "Completed requests. `flags` to `page` are other requests of SDKs and browsers; `other` is every unknown path.",
        unit: "ops",
        stacked: true,
        queries: [{ expr: sumRate("penstock_requests_total", "route"), legend: "{{route}}" }],
      }),
      timeSeries({
        title: "Forwarded to the upstream",
        description:
          "Requests that are not events, if PENSTOCK_UPSTREAM_URL is set: outcomes, requests in flight, and the size of the response cache.",
        unit: "short",
        queries: [
          {
            expr: sumRate("penstock_passed_requests_total", "kind, outcome"),
            legend: "{{kind}} {{outcome}} per second",
          },
          { expr: `sum(${of("penstock_passed_inflight")})`, legend: "in flight" },
          { expr: `sum(${of("penstock_passed_kept_bytes")})`, legend: "bytes cached" },
        ],
      }),
      timeSeries({
        title: "Requests by status",
        description:
          "Clients retry a 503; a 4xx is caused by the client; preflights of browsers are 200.",
        unit: "ops",
        queries: [
          { expr: sumRate("penstock_requests_total", "status", endpoints), legend: "{{status}}" },
        ],
      }),
      timeSeries({
        title: "Events stored by lane",
        description: "Events that JetStream has acknowledged.",
        unit: "ops",
        stacked: true,
        queries: [
          {
            expr: sumRate("penstock_events_total", "lane", 'outcome="stored"'),
            legend: "{{lane}}",
          },
        ],
      }),
      timeSeries({
        title: "Bytes received",
        description: "Bytes of request bodies as received, before decompression.",
        unit: "Bps",
        queries: [
          { expr: sumRate("penstock_request_body_bytes_sum", "instance"), legend: "{{instance}}" },
        ],
      }),
      timeSeries({
        title: "Body size",
        description: "Bytes of one request's body as received.",
        unit: "bytes",
        queries: quantiles("penstock_request_body_bytes"),
      }),
      timeSeries({
        title: "Requests in flight",
        description: "Requests without a response yet.",
        unit: "short",
        queries: [{ expr: of("penstock_requests_inflight"), legend: "{{instance}}" }],
      }),
      timeSeries({
        title: "Connections",
        description:
          "Open connections on the public port, and their maximum. Per second: rejected, closed early, reset.",
        unit: "short",
        queries: [
          { expr: of("penstock_connections"), legend: "{{instance}}" },
          { expr: of("penstock_connections_max"), legend: "{{instance}} maximum" },
          {
            expr: sumRate("penstock_connections_refused_total", "instance, limit"),
            legend: "{{instance}} rejected: {{limit}}",
          },
          {
            expr: sumRate("penstock_connections_closed_early_total", "instance, reason"),
            legend: "{{instance}} closed early: {{reason}}",
          },
          {
            expr: sumRate("penstock_unread_answers_reset_total", "instance"),
            legend: "{{instance}} reset: responses unread",
          },
        ],
      }),
      timeSeries({
        title: "Unread responses",
        description: "Bytes of responses in the kernel that clients have not acknowledged.",
        unit: "bytes",
        queries: [{ expr: of("penstock_unread_answer_bytes"), legend: "{{instance}}" }],
      }),
    ],
  },
  {
    title: "Outcomes",
    panels: [
      timeSeries({
        title: "Events not stored, by reason",
        description:
          "dropped: not stored, and listed in the warnings of a 200. error: listed in its errors. refused: rejected with a request that may be retried, so one event can count many times.",
        unit: "ops",
        queries: [
          {
            expr: sumRate("penstock_events_total", "outcome, reason", 'outcome!="stored"'),
            legend: "{{outcome}}: {{reason}}",
          },
        ],
      }),
      timeSeries({
        title: "Requests rejected (503), by code",
        description:
          "unavailable, timeout: NATS. store_full: a stream. overloaded: bytes in flight. draining: a gateway that is shutting down.",
        unit: "ops",
        queries: [
          {
            expr: sumRate(
              "penstock_problems_total",
              "code",
              'code=~"overloaded|unavailable|store_full|draining|timeout"',
            ),
            legend: "{{code}}",
          },
        ],
      }),
      timeSeries({
        title: "Requests rejected (4xx), by code",
        description: "Caused by clients. docs/reference/errors.md explains each code.",
        unit: "ops",
        queries: [
          {
            expr: sumRate(
              "penstock_problems_total",
              "code",
              'code!~"overloaded|unavailable|store_full|draining|timeout"',
            ),
            legend: "{{code}}",
          },
        ],
      }),
      timeSeries({
        title: "Warnings, by code",
        description: "Warnings on events that were stored.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_warnings_total", "code"), legend: "{{code}}" }],
      }),
      timeSeries({
        title: "Clients gone before the answer",
        description:
          "By the part of the request that had arrived: no body, a part of it, or all, so that the client was waiting for the response.",
        unit: "ops",
        queries: [
          { expr: sumRate("penstock_requests_aborted_total", "phase"), legend: "{{phase}}" },
        ],
      }),
      timeSeries({
        title: "Rejected events retained, by reason",
        description: "`penstock rejected list` prints them. They can be corrected and replayed.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_rejected_total", "reason"), legend: "{{reason}}" }],
      }),
      timeSeries({
        title: "Rejected events lost, by cause",
        description:
          "Rejected events that are not retained. too_large: above the maximum size. overflow: more than a project may have retained per second, or NATS does not respond. store: JetStream did not acknowledge them.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_rejected_lost_total", "cause"), legend: "{{cause}}" }],
      }),
      timeSeries({
        title: "Bytes of rejected events",
        description: "In the streams, the newest of which replace the oldest, and in memory.",
        unit: "bytes",
        queries: [
          {
            expr: `max by (partition) (${of("penstock_rejected_stream_bytes")})`,
            legend: "partition {{partition}}",
          },
          { expr: `sum(${of("penstock_rejected_held_bytes")})`, legend: "in memory" },
        ],
      }),
      timeSeries({
        title: "Effects of rules",
        description:
          "Events that each rule dropped, sampled out, quarantined or changed. In the mode observe, it only counts them.",
        unit: "ops",
        queries: [
          {
            expr: sumRate("penstock_rule_events_total", "project, rule, mode, effect"),
            legend: "{{project}} {{rule}} {{mode}} {{effect}}",
          },
        ],
      }),
      timeSeries({
        title: "Events checked by schemas",
        description:
          "By the project, the name of the event, the mode of the schema and the result.",
        unit: "ops",
        queries: [
          {
            expr: sumRate("penstock_schema_results_total", "project, event, mode, result"),
            legend: "{{project}} {{event}} {{mode}} {{result}}",
          },
        ],
      }),
      timeSeries({
        title: "Slow path and cut ids",
        description:
          "Items that were normalised and scanned again (escaped names, duplicate known names, U+0000, lone surrogates), and distinct ids that were shortened.",
        unit: "ops",
        queries: [
          { expr: sumRate("penstock_slow_path_items_total"), legend: "slow path" },
          { expr: sumRate("penstock_distinct_ids_cut_total"), legend: "ids cut" },
        ],
      }),
    ],
  },
  {
    title: "Latency",
    panels: [
      timeSeries({
        title: "Request latency, /capture",
        description: "From a request's head to its response, including the transfer of the body.",
        unit: "s",
        queries: quantiles("penstock_request_duration_seconds", "", 'route="capture"'),
      }),
      timeSeries({
        title: "Request latency, /batch",
        description: "From a request's head to its response, including the transfer of the body.",
        unit: "s",
        queries: quantiles("penstock_request_duration_seconds", "", 'route="batch"'),
      }),
      timeSeries({
        title: "Spans for OpenTelemetry, by outcome",
        description:
          "failed: the receiver did not accept them. dropped: the queue was full. limited: requests beyond 100 per second, which get no span. Empty unless traces are exported.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_otel_spans_total", "outcome"), legend: "{{outcome}}" }],
      }),
    ],
  },
];
