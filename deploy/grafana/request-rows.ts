// The rows of the dashboard that are about requests and events. Thresholds are those of the alerts.

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
        description: "Penstock's alerts that fire now. What to do is in deploy/runbook.md.",
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
        description: "Gateways that answer Prometheus.",
        unit: "short",
        queries: [{ expr: `sum(${of("up")})`, legend: "" }],
        thresholds: [{ from: 1, color: "green" }],
        baseColor: "red",
      }),
      stat({
        title: "NATS",
        description: "1 when every gateway chosen is connected to NATS.",
        unit: "short",
        queries: [{ expr: `min(${of("penstock_nats_connected")})`, legend: "" }],
        thresholds: [{ from: 1, color: "green" }],
        baseColor: "red",
      }),
      stat({
        title: "Events stored",
        description: "Events acknowledged by JetStream, a second.",
        unit: "ops",
        queries: [{ expr: sumRate("penstock_events_total", "", 'outcome="stored"'), legend: "" }],
        baseColor: "text",
      }),
      stat({
        title: "Refused",
        description:
          "Share of requests answered 503, of those that could be stored. Clients send these again.",
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
          "How many times faster than the objective (99.9 % over 30 days) allows requests were refused in the last hour. 14.4 wakes somebody.",
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
        description: "From a request's head to its answer, all endpoints.",
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
        description: "A full stream refuses its events (503 store_full).",
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
          "Requests answered. From `flags` to `page` it is what SDKs and browsers ask for beside; `other` is every path at which there is nothing.",
        unit: "ops",
        stacked: true,
        queries: [{ expr: sumRate("penstock_requests_total", "route"), legend: "{{route}}" }],
      }),
      timeSeries({
        title: "Passed to the upstream",
        description:
          "Requests for what is no event, where PENSTOCK_UPSTREAM_URL is set: how they ended, how many are on their way, and what is kept for when the upstream is away.",
        unit: "short",
        queries: [
          {
            expr: sumRate("penstock_passed_requests_total", "kind, outcome"),
            legend: "{{kind}} {{outcome}} a second",
          },
          { expr: `sum(${of("penstock_passed_inflight")})`, legend: "on their way" },
          { expr: `sum(${of("penstock_passed_kept_bytes")})`, legend: "bytes kept" },
        ],
      }),
      timeSeries({
        title: "Requests by status",
        description:
          "503 is refused and sent again by clients; 4xx is the client's doing; preflights of browsers are 200.",
        unit: "ops",
        queries: [
          { expr: sumRate("penstock_requests_total", "status", endpoints), legend: "{{status}}" },
        ],
      }),
      timeSeries({
        title: "Events stored by lane",
        description: "Events that are in JetStream, acknowledged.",
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
        description: "Bytes of request bodies on the wire, so compressed where clients compress.",
        unit: "Bps",
        queries: [
          { expr: sumRate("penstock_request_body_bytes_sum", "instance"), legend: "{{instance}}" },
        ],
      }),
      timeSeries({
        title: "Body size",
        description: "Bytes of one request's body on the wire.",
        unit: "bytes",
        queries: quantiles("penstock_request_body_bytes"),
      }),
      timeSeries({
        title: "Requests in flight",
        description: "Begun and not yet answered.",
        unit: "short",
        queries: [{ expr: of("penstock_requests_inflight"), legend: "{{instance}}" }],
      }),
      timeSeries({
        title: "Connections",
        description:
          "Open on the public port, and their maximum. Per second: refused as they opened, closed early, reset.",
        unit: "short",
        queries: [
          { expr: of("penstock_connections"), legend: "{{instance}}" },
          { expr: of("penstock_connections_max"), legend: "{{instance}} may be open" },
          {
            expr: sumRate("penstock_connections_refused_total", "instance, limit"),
            legend: "{{instance}} refused: {{limit}}",
          },
          {
            expr: sumRate("penstock_connections_closed_early_total", "instance, reason"),
            legend: "{{instance}} closed early: {{reason}}",
          },
          {
            expr: sumRate("penstock_unread_answers_reset_total", "instance"),
            legend: "{{instance}} reset: answers unread",
          },
        ],
      }),
      timeSeries({
        title: "Unread answers",
        description: "Bytes of answers that clients have not acknowledged, held by the kernel.",
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
          "dropped: left out of a 200, named in its warnings. error: named in its errors. refused: with a request that may come again, so one event can count many times.",
        unit: "ops",
        queries: [
          {
            expr: sumRate("penstock_events_total", "outcome, reason", 'outcome!="stored"'),
            legend: "{{outcome}}: {{reason}}",
          },
        ],
      }),
      timeSeries({
        title: "Requests refused (503), by code",
        description:
          "unavailable, timeout: NATS. store_full: a stream. overloaded: bytes in flight. draining: a gateway that shuts down.",
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
        description: "The client's doing. docs/reference/errors.md says what each code means.",
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
          "By what had come of the request: nothing of its body, a part, or all, so that it waited for the answer.",
        unit: "ops",
        queries: [
          { expr: sumRate("penstock_requests_aborted_total", "phase"), legend: "{{phase}}" },
        ],
      }),
      timeSeries({
        title: "Slow path and cut ids",
        description:
          "Items that were normalised and scanned again (escaped names, doubled names of the interface, U+0000, lone surrogates), and distinct ids cut to 200 characters.",
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
        description:
          "From a request's head to its answer, so with the time its body takes to arrive.",
        unit: "s",
        width: 12,
        queries: quantiles("penstock_request_duration_seconds", "", 'route="capture"'),
      }),
      timeSeries({
        title: "Request latency, /batch",
        description:
          "From a request's head to its answer, so with the time its body takes to arrive.",
        unit: "s",
        width: 12,
        queries: quantiles("penstock_request_duration_seconds", "", 'route="batch"'),
      }),
    ],
  },
];
