// The row of the dashboard that is about sinks, the processes that take events out of the streams
// into a database. Thresholds are those of the alerts. It is of every process of that kind: the
// gateways chosen at the top of the dashboard say nothing of them.

import { type Row, timeSeries } from "./panels.ts";
import { sumRateOfAll } from "./queries.ts";

const lanes = "{{lane}} {{instance}}";

export const sinkRows: readonly Row[] = [
  {
    title: "Events into a database (where `penstock sink` runs)",
    panels: [
      timeSeries({
        title: "Sink behind",
        description:
          "For how long the oldest event that is not in the target has been in its stream, and which of the sinks writes.",
        unit: "s",
        queries: [
          { expr: "penstock_sink_lag_seconds", legend: lanes },
          { expr: "penstock_sink_active", legend: "writes (1) {{instance}}" },
          { expr: "penstock_sink_ready", legend: "well (1) {{instance}}" },
        ],
      }),
      timeSeries({
        title: "Unread events leave in",
        description:
          "When the oldest event that is not in the target leaves its stream, beside how long events stay: an alert at half of that, another at 15 per cent.",
        unit: "s",
        queries: [
          { expr: "penstock_sink_expiry_seconds", legend: `leaves in ${lanes}` },
          { expr: "penstock_sink_retention_seconds", legend: `stays for ${lanes}` },
        ],
      }),
      timeSeries({
        title: "Messages not in the target",
        description: "Messages of the streams that are still to be written.",
        unit: "short",
        queries: [{ expr: "penstock_sink_lag_messages", legend: lanes }],
      }),
      timeSeries({
        title: "Events of sinks",
        description: "Written, there already, or put aside; and messages that are done with.",
        unit: "ops",
        queries: [
          { expr: sumRateOfAll("penstock_sink_events_total", "outcome"), legend: "{{outcome}}" },
          { expr: sumRateOfAll("penstock_sink_frames_total", "lane"), legend: "messages {{lane}}" },
          {
            expr: sumRateOfAll("penstock_sink_rejected_total", "reason"),
            legend: "aside: {{reason}}",
          },
          {
            expr: sumRateOfAll("penstock_sink_incidents_total", "kind"),
            legend: "incident {{kind}}",
          },
        ],
      }),
      timeSeries({
        title: "Commits of sinks",
        description:
          "How long the target takes for a batch, and batches that failed; how long one waits for the persons of its events.",
        unit: "s",
        queries: [
          ...[0.5, 0.99].map((quantile) => ({
            expr: `histogram_quantile(${quantile}, ${sumRateOfAll("penstock_sink_commit_seconds_bucket", "le")})`,
            legend: `p${quantile * 100}`,
          })),
          {
            expr: sumRateOfAll('penstock_sink_commits_total{outcome="failed"}'),
            legend: "failed a second",
          },
          {
            expr: "penstock_sink_persons_wait_seconds",
            legend: "waits for the effects {{instance}}",
          },
        ],
      }),
      timeSeries({
        title: "Requests of sinks",
        description:
          "To an upstream, as PostHog: how they ended, and how many projects wait for it.",
        unit: "short",
        queries: [
          {
            expr: sumRateOfAll("penstock_sink_requests_total", "outcome"),
            legend: "{{outcome}} a second",
          },
          { expr: "penstock_sink_waiting_projects", legend: "projects waiting {{instance}}" },
        ],
      }),
      timeSeries({
        title: "Memory of sinks",
        description: "Messages that were read and are not in the target yet.",
        unit: "bytes",
        queries: [{ expr: "penstock_sink_frames_bytes", legend: "messages {{instance}}" }],
      }),
    ],
  },
];
