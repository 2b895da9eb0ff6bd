// All metrics of the effects process except the default metrics of prom-client. The docs are
// generated from this table.

import { buildInfoTable, type MetricRow } from "../../../platform/metrics/table.ts";

export const effectsMetricTable = {
  ...buildInfoTable,
  penstock_effects_events_total: {
    type: "counter",
    help: "Events applied and committed, by lane and usage class, not counting duplicates.",
  },
  penstock_effects_duplicates_total: {
    type: "counter",
    help: "Duplicates of earlier events, by lane; they are counted, but not applied.",
  },
  penstock_effects_frames_total: {
    type: "counter",
    help: "Messages of the streams applied and committed, by lane.",
  },
  penstock_effects_rejected_total: {
    type: "counter",
    help: "Parts of events that could not be applied, by reason; the rest of each event was applied.",
  },
  penstock_effects_incidents_total: {
    type: "counter",
    help: "Incidents of streams, by kind, such as a replaced stream or messages that expired before they were applied.",
  },
  penstock_effects_links_total: {
    type: "counter",
    help: "Links between ids, by outcome; the outcomes that begin with refused are not errors.",
  },
  penstock_effects_commits_total: {
    type: "counter",
    help: "Transactions, by outcome: committed, failed.",
  },
  penstock_effects_commit_seconds: {
    type: "histogram",
    help: "Duration of a transaction.",
  },
  penstock_effects_lag_messages: {
    type: "gauge",
    help: "Messages stored and not applied yet, by lane; absent while NATS does not answer.",
  },
  penstock_effects_lag_seconds: {
    type: "gauge",
    help: "Age of the oldest message that is not applied yet, by lane; absent while NATS does not answer.",
  },
  penstock_effects_ready: {
    type: "gauge",
    help: "1 while events are being applied, else 0.",
  },
  penstock_effects_persons: { type: "gauge", help: "Persons in the database." },
  penstock_effects_groups: { type: "gauge", help: "Groups in the database." },
  penstock_effects_open_spikes: { type: "gauge", help: "Spikes that have not ended." },
  penstock_effects_incidents: { type: "gauge", help: "Incidents in the database." },
  penstock_effects_rejected: {
    type: "gauge",
    help: "Rejections since the database was created. The database retains the newest 10,000 of each project.",
  },
  penstock_effects_cache_bytes: {
    type: "gauge",
    help: "Memory for cached rows of people and groups.",
  },
  penstock_effects_frames_bytes: {
    type: "gauge",
    help: "Bytes of messages that were read but not yet applied.",
  },
  penstock_effects_duplicates_bytes: {
    type: "gauge",
    help: "Memory for duplicate detection.",
  },
  penstock_effects_duplicates_window_minutes: {
    type: "gauge",
    help: "Minutes for which events are remembered to detect duplicates, in the stream with the shortest time, except streams without events: 30 to 60. Less after the first events, or if more events arrive than the memory holds.",
  },
  penstock_effects_waits: {
    type: "gauge",
    help: "HTTP requests that wait until a message is applied.",
  },
} as const satisfies Record<string, MetricRow>;

export type EffectsMetricName = keyof typeof effectsMetricTable;
