// What a sink counts, for Prometheus. Counters are of batches that the target has taken. Gauges are
// read when somebody scrapes.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { lanes } from "../../../platform/nats/names.ts";
import { incidentKinds } from "../../stream/incident-kinds.ts";
import type { CommitHeard } from "../sink-counts.ts";
import { rejectReasons, requestOutcomes, type SinkTarget } from "../sink-target.ts";
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
const eventOutcomes = ["written", "duplicate", "rejected"] as const;

export class SinkMetrics {
  readonly registry = new Registry();
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #events = this.#counter("penstock_sink_events_total", "outcome");
  readonly #rejected = this.#counter("penstock_sink_rejected_total", "reason");
  readonly #frames = this.#counter("penstock_sink_frames_total", "lane");
  readonly #incidents = this.#counter("penstock_sink_incidents_total", "kind");
  readonly #commits = this.#counter("penstock_sink_commits_total", "outcome");
  readonly #commitSeconds = new Histogram({
    name: "penstock_sink_commit_seconds",
    help: sinkMetricTable.penstock_sink_commit_seconds.help,
    buckets: commitSecondsBounds,
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // A counter that appears only with its first failure gives no rate that shows this failure.
    for (const outcome of eventOutcomes) this.#events.inc({ outcome }, 0);
    for (const reason of rejectReasons) this.#rejected.inc({ reason }, 0);
    for (const lane of lanes) this.#frames.inc({ lane }, 0);
    for (const kind of incidentKinds) this.#incidents.inc({ kind }, 0);
    for (const outcome of ["committed", "failed"]) this.#commits.inc({ outcome }, 0);
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }

  /** Undefined: a batch that failed. */
  hear(commit: CommitHeard | undefined): void {
    if (commit === undefined) {
      this.#commits.inc({ outcome: "failed" });
      return;
    }
    const { batch, outcome, seconds, rejected, incidents } = commit;
    this.#commits.inc({ outcome: "committed" });
    this.#commitSeconds.observe(seconds);
    this.#events.inc({ outcome: "written" }, outcome.written);
    this.#events.inc({ outcome: "duplicate" }, outcome.duplicates);
    this.#events.inc({ outcome: "rejected" }, rejected.length);
    for (const lane of lanes) this.#frames.inc({ lane }, batch.frames[lane]);
    for (const reason of rejected) this.#rejected.inc({ reason });
    for (const kind of incidents) this.#incidents.inc({ kind });
  }

  watch({ status, framesBytes, personsWaitSeconds, target }: SinkGauges): void {
    this.#gauge("penstock_sink_persons_wait_seconds", (gauge) => gauge.set(personsWaitSeconds()));
    this.#watchRequests(target);
    this.#gauge("penstock_sink_frames_bytes", (gauge) => gauge.set(framesBytes()));
    this.#gauge("penstock_sink_ready", (gauge) => gauge.set(Number(status().reasons.length === 0)));
    this.#gauge("penstock_sink_active", (gauge) => gauge.set(Number(status().hasTarget)));
    /** Values that are not known, or not finite, are left out. */
    const ofLanes = (
      name: SinkMetricName,
      read: (stream: UnreadStream) => number | undefined,
      join: (...values: number[]) => number,
    ): void =>
      this.#gauge(name, (gauge) => {
        const { streams } = status();
        gauge.reset();
        for (const lane of lanes) {
          const values = streams
            .filter((stream) => stream.lane === lane)
            .map(read)
            .filter((value) => value !== undefined && Number.isFinite(value));
          if (values.length > 0) gauge.set({ lane }, join(...(values as number[])));
        }
      });
    const sum = (...values: number[]): number => values.reduce((all, one) => all + one, 0);
    ofLanes("penstock_sink_lag_messages", lagMessages, sum);
    ofLanes("penstock_sink_lag_seconds", ({ lagSeconds }) => lagSeconds, Math.max);
    ofLanes("penstock_sink_expiry_seconds", ({ expirySeconds }) => expirySeconds, Math.min);
    ofLanes("penstock_sink_retention_seconds", ({ retentionSeconds: of }) => of, Math.min);
  }

  #watchRequests(target: SinkGauges["target"]): void {
    const { help } = sinkMetricTable.penstock_sink_requests_total;
    new Counter({
      ...{ name: "penstock_sink_requests_total", help, labelNames: ["outcome"] },
      registers: [this.registry],
      collect() {
        this.reset();
        for (const outcome of requestOutcomes)
          this.inc({ outcome }, target.requests?.get(outcome) ?? 0);
      },
    });
    this.#gauge("penstock_sink_waiting_projects", (gauge) => gauge.set(target.waiting ?? 0));
  }

  #counter(name: SinkMetricName, ...labelNames: string[]): Counter {
    const { help } = sinkMetricTable[name];
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #gauge(name: SinkMetricName, read: (gauge: Gauge) => void): void {
    const { help } = sinkMetricTable[name];
    const registers = [this.registry];
    new Gauge({
      ...{ name, help, registers },
      labelNames: /_(lag|expiry|retention)_/.test(name) ? ["lane"] : [],
      collect() {
        read(this);
      },
    });
  }
}

function lagMessages({ sequence, lastSequence }: UnreadStream): number | undefined {
  return lastSequence === undefined ? undefined : Math.max(0, lastSequence - sequence);
}
