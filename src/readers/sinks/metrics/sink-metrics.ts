import { MetricSet } from "../../../platform/metrics/metric-set.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { incidentKinds } from "../../stream/incidents.ts";
import type { CommitCounts } from "../sink-counts.ts";
import { rejectReasons } from "../sink-records.ts";
import { requestOutcomes, type SinkTarget } from "../sink-target.ts";
import type { SinkStatus } from "../sink-writer.ts";
import type { UnreadStream } from "../unread-watch.ts";
import { type SinkMetricName, sinkMetricTable } from "./metric-table.ts";

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
  }

  /** Counts a commit, or a failed batch if undefined. */
  record(commit: CommitCounts | undefined): void {
    if (commit === undefined) {
      this.#commits.add(1, "failed");
      return;
    }
    const { batch, outcome, seconds, rejected, incidents } = commit;
    this.#commits.add(1, "committed");
    this.#commitSeconds.observe(seconds);
    this.#events.add(outcome.written, "written");
    this.#events.add(outcome.duplicates, "duplicate");
    this.#events.add(rejected.length, "rejected");
    for (const lane of lanes) this.#frames.add(batch.frames[lane], lane);
    for (const reason of rejected) this.#rejected.add(1, reason);
    for (const kind of incidents) this.#incidents.add(1, kind);
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
    /** Shows a gauge by lane, without unknown and infinite values. */
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
    ofLanes("penstock_sink_lag_messages", lagMessages, sum);
    ofLanes("penstock_sink_lag_seconds", ({ lagSeconds }) => lagSeconds, Math.max);
    ofLanes("penstock_sink_expiry_seconds", ({ expirySeconds }) => expirySeconds, Math.min);
    ofLanes("penstock_sink_retention_seconds", ({ retentionSeconds: of }) => of, Math.min);
  }
}

function lagMessages({ sequence, lastSequence }: UnreadStream): number | undefined {
  return lastSequence === undefined ? undefined : Math.max(0, lastSequence - sequence);
}
