// The dashboard row about people, groups, usage and spikes. Thresholds are those of the alerts. It
// shows all effects processes: the gateways selected at the top of the dashboard do not apply.

import { type Row, timeSeries } from "./panels.ts";
import { sumRateOfAll } from "./queries.ts";

/** Returns 0 for a series that only appears with its first count. */
function orNone(expr: string): string {
  return `${expr} or vector(0)`;
}

export const effectsRows: readonly Row[] = [
  {
    title: "People, groups, usage and spikes (where `penstock effects` runs)",
    panels: [
      timeSeries({
        title: "Effects lag",
        description:
          "Age of the oldest event in the stream that is not applied. Live events: an alert after 5 minutes.",
        unit: "s",
        queries: [
          { expr: "penstock_effects_lag_seconds", legend: "{{lane}} {{instance}}" },
          { expr: "penstock_effects_ready", legend: "applies (1) {{instance}}" },
        ],
        thresholds: [{ from: 300, color: "red" }],
      }),
      timeSeries({
        title: "Messages not applied",
        description: "Messages in the streams that are not applied yet.",
        unit: "short",
        queries: [{ expr: "penstock_effects_lag_messages", legend: "{{lane}} {{instance}}" }],
      }),
      timeSeries({
        title: "Events applied",
        description: "Events by usage class, and duplicates, which have no effect.",
        unit: "ops",
        queries: [
          { expr: sumRateOfAll("penstock_effects_events_total", "class"), legend: "{{class}}" },
          { expr: sumRateOfAll("penstock_effects_duplicates_total"), legend: "duplicates" },
          {
            expr: sumRateOfAll("penstock_effects_frames_total", "lane"),
            legend: "messages {{lane}}",
          },
        ],
      }),
      timeSeries({
        title: "Commits of effects",
        description: "Duration of a commit in the database, and failed commits.",
        unit: "s",
        queries: [
          ...[0.5, 0.99].map((quantile) => ({
            expr: `histogram_quantile(${quantile}, ${sumRateOfAll("penstock_effects_commit_seconds_bucket", "le")})`,
            legend: `p${quantile * 100}`,
          })),
          {
            expr: sumRateOfAll('penstock_effects_commits_total{outcome="failed"}'),
            legend: "failed per second",
          },
        ],
      }),
      timeSeries({
        title: "People and groups",
        description: "People and groups in the database, and spikes that have not ended.",
        unit: "short",
        queries: [
          { expr: "penstock_effects_persons", legend: "people" },
          { expr: "penstock_effects_groups", legend: "groups" },
          { expr: "penstock_effects_open_spikes", legend: "open spikes" },
        ],
      }),
      timeSeries({
        title: "Not applied, and links",
        description:
          "Values that could not be applied, incidents of streams, links by outcome, and requests that wait for a sequence.",
        unit: "short",
        queries: [
          {
            expr: orNone(sumRateOfAll("penstock_effects_rejected_total", "reason")),
            legend: "rejected {{reason}}",
          },
          {
            expr: orNone(sumRateOfAll("penstock_effects_incidents_total", "kind")),
            legend: "incident {{kind}}",
          },
          {
            expr: orNone(sumRateOfAll("penstock_effects_links_total", "outcome")),
            legend: "link {{outcome}}",
          },
          { expr: "penstock_effects_waits", legend: "waiting requests" },
        ],
      }),
      timeSeries({
        title: "Memory of the effects",
        description:
          "Bytes of cached rows of people and groups, of messages being applied, and of the memory for duplicates.",
        unit: "bytes",
        queries: [
          { expr: "penstock_effects_cache_bytes", legend: "people and groups {{instance}}" },
          { expr: "penstock_effects_frames_bytes", legend: "messages {{instance}}" },
          { expr: "penstock_effects_duplicates_bytes", legend: "duplicates {{instance}}" },
        ],
      }),
      timeSeries({
        title: "Deduplication window",
        description:
          "Of the stream with the shortest window. Below 30 minutes, more events arrive than its memory can hold.",
        unit: "m",
        queries: [{ expr: "penstock_effects_duplicates_window_minutes", legend: "{{instance}}" }],
      }),
    ],
  },
];
