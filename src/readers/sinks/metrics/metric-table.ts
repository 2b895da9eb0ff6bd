// Every metric of a sink: its name, its type, and what its labels mean. The docs are generated from
// it. The default metrics of prom-client (process_*, nodejs_*) come on top.

import type { MetricRow } from "../../../platform/metrics/table.ts";

export const sinkMetricTable = {
  penstock_sink_events_total: {
    type: "counter",
    help: "Events of batches that the target has taken, by outcome: written, duplicate (it had them already), rejected (put aside).",
  },
  penstock_sink_rejected_total: {
    type: "counter",
    help: "Lines and events put aside in the target, by reason.",
  },
  penstock_sink_frames_total: {
    type: "counter",
    help: "Messages of the streams that are done with, by lane.",
  },
  penstock_sink_incidents_total: {
    type: "counter",
    help: "Times that a stream was not the one it was, or had lost what was not read yet, by kind.",
  },
  penstock_sink_commits_total: {
    type: "counter",
    help: "Batches, by outcome: committed, failed.",
  },
  penstock_sink_commit_seconds: {
    type: "histogram",
    help: "How long the target takes for a batch.",
  },
  penstock_sink_lag_messages: {
    type: "gauge",
    help: "Messages stored and not in the target yet (for Parquet files: not committed), by lane; as far as was known of the target last; absent while NATS does not say, and on standby.",
  },
  penstock_sink_lag_seconds: {
    type: "gauge",
    help: "How long the oldest message that is not in the target has been stored, by lane; absent as above.",
  },
  penstock_sink_expiry_seconds: {
    type: "gauge",
    help: "In how long the oldest message that is not in the target leaves its stream, by lane: by age, or at the present rate by size where the stream discards old messages; absent where nothing waits, or nothing leaves.",
  },
  penstock_sink_retention_seconds: {
    type: "gauge",
    help: "How long a message stays in its stream, by lane; absent where it stays for ever.",
  },
  penstock_sink_active: {
    type: "gauge",
    help: "1 while it has the target; 0 on standby, and while the target is away.",
  },
  penstock_sink_ready: {
    type: "gauge",
    help: "1 while events are being written, or it stands by; else 0, after a batch that failed until one is written.",
  },
  penstock_sink_requests_total: {
    type: "counter",
    help: "Requests to an upstream, by outcome: taken, retried (sent again later), halved (something in it is refused), refused (one event alone, put aside), stopped (somebody has to see to it).",
  },
  penstock_sink_waiting_projects: {
    type: "gauge",
    help: "Projects whose events an upstream does not take at the moment, in each lane; 0 with any other target.",
  },
  penstock_sink_persons_wait_seconds: {
    type: "gauge",
    help: "How long the batch in hand has been waiting for the effects to apply its events, so that these get their persons (--with-person); 0: none waits.",
  },
  penstock_sink_frames_bytes: {
    type: "gauge",
    help: "Messages that were read and are not in the target yet.",
  },
} as const satisfies Record<string, MetricRow>;

export type SinkMetricName = keyof typeof sinkMetricTable;
