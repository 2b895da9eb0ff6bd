// Penstock's counters. The hot path calls one method per request or frame, and each call only adds
// to plain numbers. At a scrape, prom-client's registry reads the numbers. labels.ts has the label
// values.

import { type ErrorCode, errorTable } from "../../../platform/base/errors.ts";
import type { Lane } from "../../../platform/base/lane.ts";
import { type WarningCode, warningCodes } from "../../../platform/base/warnings.ts";
import { type Histogram, LabeledCounters } from "../../../platform/metrics/counters.ts";
import { MetricSet } from "../../../platform/metrics/metric-set.ts";
import type { Sample } from "../../../platform/metrics/table.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { type RegressionCause, regressionCauses } from "../../../platform/nats/readiness.ts";
import {
  type AckFailureCause,
  ackFailureCauses,
  type BatchOutcome,
  batchOutcomes,
} from "../../publish/outcomes.ts";
import {
  type PassedKind,
  type PassedOutcome,
  passedKinds,
  passedOutcomes,
} from "../../upstream/labels.ts";
import { watchEventLoopDelay } from "./event-loop-delay.ts";
import {
  type AbortPhase,
  abortPhases,
  type EventReason,
  endpoints,
  type MetricsRoute,
  outcomeOfReason,
  routes,
} from "./labels.ts";
import { type MetricName, metricTable } from "./metric-table.ts";

/**
 * Functions that return the current value of a gauge, or one value per series. Each part of the
 * program provides its gauges.
 */
interface Gauges {
  readonly requestsInflight?: () => number;
  readonly framesUnacked?: () => number;
  readonly inflightBytes?: () => number;
  readonly inflightBytesMax?: () => number;
  readonly natsConnected?: () => boolean;
  readonly projectsKnown?: () => number;
  readonly registryInDoubt?: () => boolean;
  readonly projectsOverShare?: () => number;
  readonly tlsCertificateExpiry?: () => number;
  readonly streamBytes?: () => Sample[];
  readonly streamBytesMax?: () => Sample[];
  readonly connections?: () => number;
  readonly connectionsMax?: () => number;
  readonly connectionsRefused?: () => Sample[];
  readonly connectionsClosedEarly?: () => Sample[];
  readonly unreadAnswerBytes?: () => number;
  readonly unreadAnswersReset?: () => number;
  readonly streamsRefused?: () => number;
  readonly passedInflight?: () => number;
  readonly passedKeptBytes?: () => number;
}

const gaugeNames = {
  requestsInflight: "penstock_requests_inflight",
  framesUnacked: "penstock_frames_unacked",
  inflightBytes: "penstock_inflight_bytes",
  inflightBytesMax: "penstock_inflight_bytes_max",
  natsConnected: "penstock_nats_connected",
  projectsKnown: "penstock_projects",
  registryInDoubt: "penstock_registry_in_doubt",
  projectsOverShare: "penstock_projects_over_share",
  tlsCertificateExpiry: "penstock_tls_certificate_expiry_seconds",
  connections: "penstock_connections",
  connectionsMax: "penstock_connections_max",
  connectionsRefused: "penstock_connections_refused_total",
  connectionsClosedEarly: "penstock_connections_closed_early_total",
  unreadAnswerBytes: "penstock_unread_answer_bytes",
  unreadAnswersReset: "penstock_unread_answers_reset_total",
  streamBytes: "penstock_stream_bytes",
  streamBytesMax: "penstock_stream_bytes_max",
  streamsRefused: "penstock_streams_refused",
  passedInflight: "penstock_passed_inflight",
  passedKeptBytes: "penstock_passed_kept_bytes",
} as const satisfies Record<keyof Gauges, MetricName>;

const reasons = Object.keys(outcomeOfReason) as EventReason[];
const STATUS_MAX = 599;
const errorCodes = Object.keys(errorTable) as ErrorCode[];
/**
 * The statuses whose series exist from the first scrape on. If a counter appeared only with its
 * first failure, a rate would not include that failure.
 */
const statusesExpected = {
  endpoint: new Set<number>(
    [200, ...errorCodes.map((code) => errorTable[code].status)].filter((status) => status !== 404),
  ),
  elsewhere: new Set<number>([200]),
  other: new Set<number>([404]),
};

const requestSecondsBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const bytesBounds = [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
const batchFramesBounds = [16, 32, 64, 128, 256, 512, 1_000];
const frameEventsBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000];

interface RouteCounts {
  /** Number of answers by status. */
  readonly answers: Float64Array;
  readonly seconds: Histogram;
  readonly takesEvents: boolean;
}

export class Metrics extends MetricSet<MetricName> {
  readonly #routes = this.#countsOfRoutes();
  readonly #bodyBytes = this.histogram("penstock_request_body_bytes", bytesBounds);
  readonly #problems = this.tally("penstock_problems_total", ["code", errorCodes]);
  readonly #aborted = this.tally("penstock_requests_aborted_total", ["phase", abortPhases]);
  readonly #events = new LabeledCounters(lanes, reasons, (lane, reason) => {
    return { lane, outcome: outcomeOfReason[reason], reason };
  });
  readonly #warnings = this.tally("penstock_warnings_total", ["code", warningCodes]);
  readonly #slowPathItems = this.counter("penstock_slow_path_items_total");
  readonly #distinctIdsCut = this.counter("penstock_distinct_ids_cut_total");
  readonly #frames = this.tally("penstock_frames_total", ["lane", lanes]);
  readonly #frameEvents = this.histogram("penstock_frame_events", frameEventsBounds);
  readonly #frameBytes = this.histogram("penstock_frame_bytes", bytesBounds);
  readonly #batches = this.tally("penstock_atomic_batches_total", ["outcome", batchOutcomes]);
  readonly #batchFrames = this.histogram("penstock_atomic_batch_frames", batchFramesBounds);
  readonly #ackSeconds = this.histograms("penstock_ack_duration_seconds", requestSecondsBounds, [
    "lane",
    lanes,
  ]);
  readonly #frameRetries = this.counter("penstock_frame_retries_total");
  readonly #acksFailed = this.tally("penstock_acks_failed_total", ["cause", ackFailureCauses]);
  readonly #duplicateFrames = this.tally("penstock_duplicate_frames_total", ["lane", lanes]);
  readonly #duplicateEvents = this.tally("penstock_duplicate_events_total", ["lane", lanes]);
  readonly #streamRegressions = this.tally(
    "penstock_stream_regressions_total",
    ["lane", lanes],
    ["cause", regressionCauses],
  );
  readonly #passed = this.tally(
    "penstock_passed_requests_total",
    ["kind", passedKinds],
    ["outcome", passedOutcomes],
  );
  readonly #loopDelay = watchEventLoopDelay();

  constructor() {
    super(metricTable);
    this.show("penstock_requests_total", () => this.#requestSamples());
    this.show("penstock_events_total", () => this.#events.samples());
    // The numbers of a single process. With several workers, the supervisor adds these numbers up,
    // together with its own count of restarts.
    this.show("penstock_workers", () => 1);
    this.show("penstock_worker_restarts_total", () => 0);
    this.show("penstock_event_loop_delay_seconds", () => this.#loopDelay.samples());
  }

  /**
   * Counts an answered request; must be called once for each. `bodyBytes` is the number of bytes as
   * received.
   */
  requestFinished(route: MetricsRoute, status: number, seconds: number, bodyBytes: number): void {
    const counts = this.#routes[route];
    counts.answers[status]! += 1;
    counts.seconds.observe(seconds);
    if (counts.takesEvents) this.#bodyBytes.observe(bodyBytes);
  }

  /**
   * Counts a request answered with an error; must be called once for each, in addition to
   * requestFinished.
   */
  problemAnswered(code: ErrorCode): void {
    this.#problems.add(1, code);
  }

  /**
   * Counts a request whose client disconnected before its answer; must be called once for each.
   * Such a request is not counted as finished.
   */
  requestAborted(phase: AbortPhase): void {
    this.#aborted.add(1, phase);
  }

  /** Counts a request for the upstream; must be called once for each. */
  requestPassed(kind: PassedKind, outcome: PassedOutcome): void {
    this.#passed.add(1, kind, outcome);
  }

  events(lane: Lane, reason: EventReason, count: number): void {
    this.#events.add(count, lane, reason);
  }

  warnings(code: WarningCode, count: number): void {
    this.#warnings.add(count, code);
  }

  slowPathItems(count: number): void {
    this.#slowPathItems.add(count);
  }

  distinctIdsCut(count: number): void {
    this.#distinctIdsCut.add(count);
  }

  /** Counts a frame; must be called once for each, at its first send. */
  frameSent(lane: Lane, events: number, bytes: number): void {
    this.#frames.add(1, lane);
    this.#frameEvents.observe(events);
    this.#frameBytes.observe(bytes);
  }

  frameAcked(lane: Lane, seconds: number): void {
    this.#ackSeconds[lane].observe(seconds);
  }

  frameRetried(): void {
    this.#frameRetries.add(1);
  }

  /** Counts an atomic batch; must be called once for each, at its end. */
  batchEnded(outcome: BatchOutcome, frames: number): void {
    this.#batches.add(1, outcome);
    this.#batchFrames.observe(frames);
  }

  /**
   * Counts a send of a frame or an atomic batch without a storing PubAck; must be called once for
   * each. A retried frame can fail more than once.
   */
  ackFailed(cause: AckFailureCause): void {
    this.#acksFailed.add(1, cause);
  }

  duplicateFrame(lane: Lane, events: number): void {
    this.#duplicateFrames.add(1, lane);
    this.#duplicateEvents.add(events, lane);
  }

  streamWentBack(lane: Lane, cause: RegressionCause): void {
    this.#streamRegressions.add(1, lane, cause);
  }

  /** Adds gauges. A gauge without a function is absent from the scrape. */
  watch(gauges: Gauges): void {
    for (const key of Object.keys(gauges) as (keyof Gauges)[]) {
      const read = gauges[key];
      if (read !== undefined) this.show(gaugeNames[key], read);
    }
  }

  close(): void {
    this.#loopDelay.close();
  }

  #countsOfRoutes(): Readonly<Record<MetricsRoute, RouteCounts>> {
    const name = "penstock_request_duration_seconds";
    const seconds = this.histograms(name, requestSecondsBounds, ["route", routes]);
    const takingEvents: readonly MetricsRoute[] = endpoints;
    const countsOf = (route: MetricsRoute): RouteCounts => ({
      answers: new Float64Array(STATUS_MAX + 1),
      seconds: seconds[route],
      takesEvents: takingEvents.includes(route),
    });
    const each = routes.map((route) => [route, countsOf(route)] as const);
    return Object.fromEntries(each) as Record<MetricsRoute, RouteCounts>;
  }

  #requestSamples(): Sample[] {
    return routes.flatMap((route) => {
      const { answers, takesEvents } = this.#routes[route];
      const kind = takesEvents ? "endpoint" : route === "other" ? "other" : "elsewhere";
      return [...answers.entries()]
        .filter(([status, value]) => value > 0 || statusesExpected[kind].has(status))
        .map(([status, value]) => ({ labels: { route, status: String(status) }, value }));
    });
  }
}

/** Returns metrics with all counters at zero. They measure the event loop until they are closed. */
export function createMetrics(): Metrics {
  return new Metrics();
}
