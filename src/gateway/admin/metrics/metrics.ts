// What Penstock counts. The hot path calls one method for each request or frame, and each call only
// adds to plain numbers. prom-client's registry reads them at a scrape. The values that labels can
// have are in labels.ts.

import { collectDefaultMetrics, Registry } from "prom-client";
import { type ErrorCode, errorTable } from "../../../platform/base/errors.ts";
import type { Lane } from "../../../platform/base/lane.ts";
import type { MetricSnapshot, Sample } from "../../../platform/base/sample.ts";
import { type WarningCode, warningCodes } from "../../../platform/base/warnings.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { type RegressionCause, regressionCauses } from "../../../platform/nats/readiness.ts";
import {
  type AckFailureCause,
  ackFailureCauses,
  type BatchOutcome,
  batchOutcomes,
} from "../../publish/publish-metrics.ts";
import {
  type PassedKind,
  type PassedOutcome,
  passedKinds,
  passedOutcomes,
} from "../../upstream/labels.ts";
import { watchEventLoopDelay } from "./event-loop-delay.ts";
import { Histogram } from "./histogram.ts";
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
import { register, scrapeContentType, snapshotOf } from "./snapshot.ts";
import { placesOf, rowsOf, Tally } from "./tally.ts";

/**
 * The gauges, as functions that read the present value, or one value for each series. Each part of
 * the program gives the gauges that it has.
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
const routePlace = placesOf(routes);
const lanePlace = placesOf(lanes);
const phasePlace = placesOf(abortPhases);
const causePlace = placesOf(ackFailureCauses);
const batchPlace = placesOf(batchOutcomes);
const regressionPlace = placesOf(regressionCauses);
const warningPlace = placesOf(warningCodes);
const reasonPlace = placesOf(reasons);
const kindPlace = placesOf(passedKinds);
const passedPlace = placesOf(passedOutcomes);

const STATUS_MAX = 599;
const endpointCells = endpoints.length * (STATUS_MAX + 1);
const errorCodes = Object.keys(errorTable) as ErrorCode[];
const codePlace = placesOf(errorCodes);
/**
 * The statuses whose series exist from the first scrape on. A counter that appears only with its
 * first failure gives no rate that shows this failure.
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

export class Metrics {
  readonly registry = new Registry();
  readonly contentType = scrapeContentType;
  readonly #counting: (() => MetricSnapshot)[] = [];
  readonly #requests = new Float64Array(routes.length * (STATUS_MAX + 1));
  readonly #requestSeconds = routes.map(() => new Histogram(requestSecondsBounds));
  readonly #bodyBytes = new Histogram(bytesBounds);
  readonly #problems = new Tally(rowsOf("code", errorCodes));
  readonly #aborted = new Tally(rowsOf("phase", abortPhases));
  readonly #events = new Tally(
    lanes.flatMap((lane) =>
      reasons.map((reason) => ({ lane, outcome: outcomeOfReason[reason], reason })),
    ),
  );
  readonly #warnings = new Tally(rowsOf("code", warningCodes));
  readonly #frames = new Tally(rowsOf("lane", lanes));
  readonly #frameEvents = new Histogram(frameEventsBounds);
  readonly #frameBytes = new Histogram(bytesBounds);
  readonly #batches = new Tally(rowsOf("outcome", batchOutcomes));
  readonly #batchFrames = new Histogram(batchFramesBounds);
  readonly #ackSeconds = lanes.map(() => new Histogram(requestSecondsBounds));
  readonly #acksFailed = new Tally(rowsOf("cause", ackFailureCauses));
  readonly #duplicateFrames = new Tally(rowsOf("lane", lanes));
  readonly #duplicateEvents = new Tally(rowsOf("lane", lanes));
  readonly #streamRegressions = new Tally(
    lanes.flatMap((lane) => regressionCauses.map((cause) => ({ lane, cause }))),
  );
  readonly #passed = new Tally(
    passedKinds.flatMap((kind) => passedOutcomes.map((outcome) => ({ kind, outcome }))),
  );
  readonly #loopDelay = watchEventLoopDelay();
  #slowPathItems = 0;
  #distinctIdsCut = 0;
  #frameRetries = 0;

  constructor() {
    this.#register("penstock_requests_total", () => this.#requestSamples());
    this.#register("penstock_problems_total", () => this.#problems.samples());
    this.#register("penstock_passed_requests_total", () => this.#passed.samples());
    this.#register("penstock_request_duration_seconds", (name) =>
      routes.flatMap((route, place) => this.#requestSeconds[place]!.samples(name, { route })),
    );
    this.#register("penstock_request_body_bytes", (name) => this.#bodyBytes.samples(name, {}));
    this.#register("penstock_requests_aborted_total", () => this.#aborted.samples());
    this.#register("penstock_events_total", () => this.#events.samples());
    this.#register("penstock_warnings_total", () => this.#warnings.samples());
    this.#register("penstock_slow_path_items_total", () => single(this.#slowPathItems));
    this.#register("penstock_distinct_ids_cut_total", () => single(this.#distinctIdsCut));
    this.#register("penstock_frames_total", () => this.#frames.samples());
    this.#register("penstock_frame_events", (name) => this.#frameEvents.samples(name, {}));
    this.#register("penstock_frame_bytes", (name) => this.#frameBytes.samples(name, {}));
    this.#register("penstock_atomic_batches_total", () => this.#batches.samples());
    this.#register("penstock_atomic_batch_frames", (name) => this.#batchFrames.samples(name, {}));
    this.#register("penstock_ack_duration_seconds", (name) =>
      lanes.flatMap((lane, place) => this.#ackSeconds[place]!.samples(name, { lane })),
    );
    this.#register("penstock_frame_retries_total", () => single(this.#frameRetries));
    this.#register("penstock_acks_failed_total", () => this.#acksFailed.samples());
    this.#register("penstock_duplicate_frames_total", () => this.#duplicateFrames.samples());
    this.#register("penstock_duplicate_events_total", () => this.#duplicateEvents.samples());
    this.#register("penstock_stream_regressions_total", () => this.#streamRegressions.samples());
    // Both are the numbers of a single process. Where there are several, the supervisor adds them
    // up, and adds the restarts that it has made.
    this.#register("penstock_workers", () => single(1));
    this.#register("penstock_worker_restarts_total", () => single(0));
    this.#register("penstock_event_loop_delay_seconds", () => this.#loopDelay.samples());
    collectDefaultMetrics({ register: this.registry });
  }

  /** To be called once for each request that was answered. `bodyBytes` counts bytes on the wire. */
  requestFinished(route: MetricsRoute, status: number, seconds: number, bodyBytes: number): void {
    const place = routePlace[route];
    this.#requests[place * (STATUS_MAX + 1) + status]! += 1;
    this.#requestSeconds[place]!.observe(seconds);
    if (place < endpoints.length) this.#bodyBytes.observe(bodyBytes);
  }

  /** To be called once for each request answered with an error, in addition to requestFinished. */
  problemAnswered(code: ErrorCode): void {
    this.#problems.add(codePlace[code], 1);
  }

  /**
   * To be called once for each request whose client went away before its answer. Such a request is
   * not counted as finished.
   */
  requestAborted(phase: AbortPhase): void {
    this.#aborted.add(phasePlace[phase], 1);
  }

  /** To be called once for each request for the upstream. */
  requestPassed(kind: PassedKind, outcome: PassedOutcome): void {
    this.#passed.add(kindPlace[kind] * passedOutcomes.length + passedPlace[outcome], 1);
  }

  events(lane: Lane, reason: EventReason, count: number): void {
    this.#events.add(lanePlace[lane] * reasons.length + reasonPlace[reason], count);
  }

  warnings(code: WarningCode, count: number): void {
    this.#warnings.add(warningPlace[code], count);
  }

  slowPathItems(count: number): void {
    this.#slowPathItems += count;
  }

  distinctIdsCut(count: number): void {
    this.#distinctIdsCut += count;
  }

  /** To be called once for each frame, at its first send. */
  frameSent(lane: Lane, events: number, bytes: number): void {
    this.#frames.add(lanePlace[lane], 1);
    this.#frameEvents.observe(events);
    this.#frameBytes.observe(bytes);
  }

  frameAcked(lane: Lane, seconds: number): void {
    this.#ackSeconds[lanePlace[lane]]!.observe(seconds);
  }

  frameRetried(): void {
    this.#frameRetries += 1;
  }

  /** To be called once for each atomic batch, at its end. */
  batchEnded(outcome: BatchOutcome, frames: number): void {
    this.#batches.add(batchPlace[outcome], 1);
    this.#batchFrames.observe(frames);
  }

  /**
   * To be called once for each send without a good PubAck, be it of a frame or of an atomic batch.
   * A frame that is sent again can fail more than once.
   */
  ackFailed(cause: AckFailureCause): void {
    this.#acksFailed.add(causePlace[cause], 1);
  }

  duplicateFrame(lane: Lane, events: number): void {
    this.#duplicateFrames.add(lanePlace[lane], 1);
    this.#duplicateEvents.add(lanePlace[lane], events);
  }

  streamWentBack(lane: Lane, cause: RegressionCause): void {
    this.#streamRegressions.add(
      lanePlace[lane] * regressionCauses.length + regressionPlace[cause],
      1,
    );
  }

  /**
   * Adds gauges. A gauge nobody gives a function for is absent from the scrape; one given twice is
   * a bug and throws.
   */
  watch(gauges: Gauges): void {
    for (const key of Object.keys(gauges) as (keyof Gauges)[]) {
      const read = gauges[key];
      if (read !== undefined) this.#register(gaugeNames[key], () => samplesOf(read()));
    }
  }

  /** The scrape, in the Prometheus text format. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  /** The scrape as values. */
  snapshot(): Promise<MetricSnapshot[]> {
    return snapshotOf(this.registry);
  }

  /**
   * Penstock's own counters and histograms. Unlike a scrape this begins no new window, so it may be
   * called at any time.
   */
  counts(): MetricSnapshot[] {
    return this.#counting.map((read) => read());
  }

  close(): void {
    this.#loopDelay.close();
  }

  #requestSamples(): Sample[] {
    const samples: Sample[] = [];
    for (let cell = 0; cell < this.#requests.length; cell++) {
      const value = this.#requests[cell]!;
      const route = routes[Math.floor(cell / (STATUS_MAX + 1))]!;
      const status = cell % (STATUS_MAX + 1);
      const kind = cell < endpointCells ? "endpoint" : route === "other" ? "other" : "elsewhere";
      const isExpected = statusesExpected[kind].has(status);
      if (value > 0 || isExpected)
        samples.push({ labels: { route, status: String(status) }, value });
    }
    return samples;
  }

  #register(name: MetricName, read: (name: MetricName) => Sample[]): void {
    const { type, help } = metricTable[name];
    const snapshot = () => ({ name, type, help, values: read(name) });
    register(this.registry, name, snapshot);
    if (type !== "gauge") this.#counting.push(snapshot);
  }
}

function single(value: number): Sample[] {
  return [{ labels: {}, value }];
}

function samplesOf(read: number | boolean | Sample[]): Sample[] {
  return typeof read === "object" ? read : single(Number(read));
}

/** All counters at zero. Measures the event loop until closed. */
export function createMetrics(): Metrics {
  return new Metrics();
}
