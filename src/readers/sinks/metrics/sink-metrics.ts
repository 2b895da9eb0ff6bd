import { MetricSet } from "../../../platform/metrics/metric-set.ts";
import { buildInfo, buildInfoTable, type MetricRow } from "../../../platform/metrics/table.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { incidentKinds } from "../../stream/resume.ts";
import { rejectReasons } from "../sink-records.ts";
import { requestOutcomes, type SinkTarget } from "../sink-target.ts";
import type { CommitCounts, SinkStatus } from "../sink-writer.ts";
import type { UnreadStream } from "../unread-watch.ts";

/** All metrics of a sink. The docs are generated from this table. */
export const sinkMetricTable = {
  ...buildInfoTable,
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
    help: "Incidents of streams, by kind, such as a replaced stream or messages that expired before they were read.",
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
    help: "Messages that are stored but not yet in the target, by lane; for Parquet files, not yet committed. Uses the last known state of the target. Absent on standby and while NATS does not answer.",
  },
  penstock_sink_lag_seconds: {
    type: "gauge",
    help: "Age of the oldest message that is not in the target, by lane. Absent on standby and while NATS does not answer.",
  },
  penstock_sink_expiry_seconds: {
    type: "gauge",
    help: "Time until the oldest message that is not in the target leaves its stream, by lane. A message leaves by age or, if the stream discards old messages, by size at the current rate. Absent if no message waits or no message would leave.",
  },
  penstock_sink_retention_seconds: {
    type: "gauge",
    help: "Retention time of a message in its stream, by lane; absent without a limit.",
  },
  penstock_sink_active: {
    type: "gauge",
    help: "1 while the sink has the target; 0 on standby, and while the target is unreachable.",
  },
  penstock_sink_ready: {
    type: "gauge",
    help: "1 while events are being written, or on standby; 0 from a failed batch until the next successful batch.",
  },
  penstock_sink_requests_total: {
    type: "counter",
    help: "Requests to an upstream, by outcome: taken, retried (sent again later), halved (the upstream refused the request, which is sent again in halves), refused (the upstream refused its only event, which is rejected), stopped (an operator must intervene).",
  },
  penstock_sink_waiting_projects: {
    type: "gauge",
    help: "Projects whose events an upstream does not accept at the moment, by lane; 0 for other targets.",
  },
  penstock_sink_persons_wait_seconds: {
    type: "gauge",
    help: "Time that the current batch has been waiting for the effects to apply its events (--with-person); 0: no batch waits.",
  },
  penstock_sink_frames_bytes: {
    type: "gauge",
    help: "Bytes of messages that were read but are not yet in the target.",
  },
} as const satisfies Record<string, MetricRow>;

type SinkMetricName = keyof typeof sinkMetricTable;

interface SinkGauges {
  readonly status: () => SinkStatus;
  readonly framesBytes: () => number;
  readonly personsWaitSeconds: () => number;
  readonly target: Pick<SinkTarget, "requests" | "waiting">;
}

const commitSecondsBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];

export class SinkMetrics extends MetricSet<SinkMetricName> {
  readonly #events = this.tally("penstock_sink_events_total", [
    "outcome",
    ["written", "duplicate", "rejected"],
  ]);
  readonly #rejected = this.tally("penstock_sink_rejected_total", ["reason", rejectReasons]);
  readonly #frames = this.tally("penstock_sink_frames_total", ["lane", lanes]);
  readonly #incidents = this.tally("penstock_sink_incidents_total", ["kind", incidentKinds]);
  readonly #commits = this.tally("penstock_sink_commits_total", [
    "outcome",
    ["committed", "failed"],
  ]);
  readonly #commitSeconds = this.histogram("penstock_sink_commit_seconds", commitSecondsBounds);

  constructor() {
    super(sinkMetricTable);
    this.show("penstock_build_info", () => buildInfo);
  }

  record(commit: CommitCounts | undefined): void {
    if (commit === undefined) {
      this.#commits.add(1, "failed");
      return;
    }
    const { batch, outcome, seconds } = commit;
    this.#commits.add(1, "committed");
    this.#commitSeconds.observe(seconds);
    this.#events.add(outcome.written, "written");
    this.#events.add(outcome.duplicates, "duplicate");
    this.#events.add(batch.rejected.length + outcome.refused, "rejected");
    for (const lane of lanes) this.#frames.add(batch.frames[lane], lane);
    for (const { reason } of batch.rejected) this.#rejected.add(1, reason);
    this.#rejected.add(outcome.refused, "value");
    for (const { kind } of batch.incidents) this.#incidents.add(1, kind);
  }

  watch({ status, framesBytes, personsWaitSeconds, target }: SinkGauges): void {
    this.show("penstock_sink_persons_wait_seconds", personsWaitSeconds);
    this.show("penstock_sink_requests_total", () =>
      requestOutcomes.map((outcome) => {
        return { labels: { outcome }, value: target.requests?.get(outcome) ?? 0 };
      }),
    );
    this.show("penstock_sink_waiting_projects", () => target.waiting ?? 0);
    this.show("penstock_sink_frames_bytes", framesBytes);
    this.show("penstock_sink_ready", () => status().reasons.length === 0);
    this.show("penstock_sink_active", () => status().hasTarget);
    const ofLanes = (
      name: SinkMetricName,
      read: (stream: UnreadStream) => number | undefined,
      join: (...values: number[]) => number,
    ): void =>
      this.show(name, () => {
        const { streams } = status();
        return lanes.flatMap((lane) => {
          const values = streams
            .filter((stream) => stream.lane === lane)
            .map(read)
            .filter((value) => value !== undefined && Number.isFinite(value));
          return values.length === 0
            ? []
            : [{ labels: { lane }, value: join(...(values as number[])) }];
        });
      });
    const sum = (...values: number[]): number => values.reduce((all, one) => all + one, 0);
    const lag = ({ sequence, lastSequence = Number.NaN }: UnreadStream) =>
      Math.max(0, lastSequence - sequence);
    ofLanes("penstock_sink_lag_messages", lag, sum);
    ofLanes("penstock_sink_lag_seconds", ({ lagSeconds }) => lagSeconds, Math.max);
    ofLanes("penstock_sink_expiry_seconds", ({ expirySeconds }) => expirySeconds, Math.min);
    ofLanes("penstock_sink_retention_seconds", ({ retentionSeconds: of }) => of, Math.min);
  }
}
