// The dashboard row about sinks, the processes that copy events from the streams into a database.
// Thresholds are those of the alerts. It shows all sink processes: the gateways selected at the top
// of the dashboard do not apply.

import { type Row, timeSeries } from "./panels.ts";
import { sumRateOfAll } from "./queries.ts";

const lanes = "{{lane}} {{instance}}";

export const sinkRows: readonly Row[] = [
  {
    title: "Events into a database (where `penstock sink` runs)",
    panels: [
      timeSeries({
        title: "Sink lag",
        description:
          "Age of the oldest event in the stream that is not in the target, and which of the sinks is active.",
        unit: "s",
        queries: [
          { expr: "penstock_sink_lag_seconds", legend: lanes },
          { expr: "penstock_sink_active", legend: "writes (1) {{instance}}" },
          { expr: "penstock_sink_ready", legend: "ready (1) {{instance}}" },
        ],
      }),
      timeSeries({
        title: "Unread events expire in",
        description:
          "Time until the oldest event that is not in the target expires, and the retention of the stream: an alert at half of that, another at 15 per cent.",
        unit: "s",
        queries: [
          { expr: "penstock_sink_expiry_seconds", legend: `expires in ${lanes}` },
          { expr: "penstock_sink_retention_seconds", legend: `retention ${lanes}` },
        ],
      }),
      timeSeries({
        title: "Messages not in the target",
        description: "Messages in the streams that are not written yet.",
        unit: "short",
        queries: [{ expr: "penstock_sink_lag_messages", legend: lanes }],
      }),
      timeSeries({
        title: "Events of sinks",
        description:
          "Events that were written, already there, or rejected; and completed messages.",
        unit: "ops",
        queries: [
          { expr: sumRateOfAll("penstock_sink_events_total", "outcome"), legend: "{{outcome}}" },
          { expr: sumRateOfAll("penstock_sink_frames_total", "lane"), legend: "messages {{lane}}" },
          {
            expr: sumRateOfAll("penstock_sink_rejected_total", "reason"),
            legend: "rejected: {{reason}}",
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
          "Duration of a batch in the target, failed batches, and the time that a batch waits for the persons of its events.",
        unit: "s",
        queries: [
          ...[0.5, 0.99].map((quantile) => ({
            expr: `histogram_quantile(${quantile}, ${sumRateOfAll("penstock_sink_commit_seconds_bucket", "le")})`,
            legend: `p${quantile * 100}`,
          })),
          {
            expr: sumRateOfAll('penstock_sink_commits_total{outcome="failed"}'),
            legend: "failed per second",
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
          "Requests to an HTTP target such as PostHog: outcomes, and the number of projects that wait.",
        unit: "short",
        queries: [
          {
            expr: sumRateOfAll("penstock_sink_requests_total", "outcome"),
            legend: "{{outcome}} per second",
          },
          { expr: "penstock_sink_waiting_projects", legend: "projects waiting {{instance}}" },
        ],
      }),
      timeSeries({
        title: "Memory of sinks",
        description: "Bytes of messages that were read and are not in the target yet.",
        unit: "bytes",
        queries: [{ expr: "penstock_sink_frames_bytes", legend: "messages {{instance}}" }],
      }),
    ],
  },
];
