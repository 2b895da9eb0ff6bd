// All metrics of a sink. The docs are generated from this table.

import type { MetricRow } from "../../../platform/metrics/table.ts";

export const sinkMetricTable = {
  penstock_sink_events_total: {
    type: "counter",
    help: "Events of batches written to the target, by outcome: written, duplicate (already in the target), rejected.",
  },
  penstock_sink_rejected_total: {
    type: "counter",
    help: "Lines and events rejected, by reason.",
  },
  penstock_sink_frames_total: {
    type: "counter",
    help: "Messages of the streams that were processed, by lane.",
  },
  penstock_sink_incidents_total: {
    type: "counter",
    help: "Incidents: a stream was replaced, or had lost messages that were not read yet, by kind.",
  },
  penstock_sink_commits_total: {
    type: "counter",
    help: "Batches, by outcome: committed, failed.",
  },
  penstock_sink_commit_seconds: {
    type: "histogram",
    help: "Time that the target takes for a batch.",
  },
  penstock_sink_lag_messages: {
    type: "gauge",
    help: "Messages stored and not yet in the target (for Parquet files: not committed), by lane; by the last known state of the target; absent while NATS does not answer, and on standby.",
  },
  penstock_sink_lag_seconds: {
    type: "gauge",
    help: "Time since the oldest message that is not in the target was stored, by lane; absent as above.",
  },
  penstock_sink_expiry_seconds: {
    type: "gauge",
    help: "Time until the oldest message that is not in the target leaves its stream, by lane: by age, or at the current rate by size if the stream discards old messages; absent if nothing waits or nothing leaves.",
  },
  penstock_sink_retention_seconds: {
    type: "gauge",
    help: "How long a message stays in its stream, by lane; absent if it stays for ever.",
  },
  penstock_sink_active: {
    type: "gauge",
    help: "1 while the sink has the target; 0 on standby, and while the target is unreachable.",
  },
  penstock_sink_ready: {
    type: "gauge",
    help: "1 while events are being written, or on standby; 0 from a failed batch until the next one is written.",
  },
  penstock_sink_requests_total: {
    type: "counter",
    help: "Requests to an upstream, by outcome: taken, retried (sent again later), halved (something in it is refused), refused (a single event, rejected), stopped (an operator must intervene).",
  },
  penstock_sink_waiting_projects: {
    type: "gauge",
    help: "Projects whose events an upstream does not accept at the moment, in each lane; 0 with any other target.",
  },
  penstock_sink_persons_wait_seconds: {
    type: "gauge",
    help: "Time that the current batch has been waiting for the effects to apply its events, so that it gets their persons (--with-person); 0: no batch waits.",
  },
  penstock_sink_frames_bytes: {
    type: "gauge",
    help: "Messages that were read and are not yet in the target.",
  },
} as const satisfies Record<string, MetricRow>;

export type SinkMetricName = keyof typeof sinkMetricTable;
