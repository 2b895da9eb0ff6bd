// The metrics of the gateway. The hot path calls one method per request or frame, and each call
// only adds to numbers. Label values never contain a key or a path that a client chose, and no
// project except in the counters of rules, which are bounded.

import { monitorEventLoopDelay } from "node:perf_hooks";
import { type ErrorCode, errorTable, itemErrorCodes } from "../../../platform/base/errors.ts";
import type { Lane } from "../../../platform/base/lane.ts";
import {
  type DropCode,
  dropTable,
  type WarningCode,
  warningCodes,
} from "../../../platform/base/warnings.ts";
import {
  type Histogram,
  LabeledCounters,
  MetricSet,
} from "../../../platform/metrics/metric-set.ts";
import { buildInfo, type Sample } from "../../../platform/metrics/table.ts";
import { lanes } from "../../../platform/nats/names.ts";
import { type RegressionCause, regressionCauses } from "../../../platform/nats/readiness.ts";
import type { RequestPhase } from "../../body/request-body.ts";
import { eventRoutes, type RouteLabel, sdkLabels } from "../../http/paths.ts";
import type { QuarantineReason } from "../../intake/quarantine-port.ts";
import type { EventReason } from "../../intake/tally.ts";
import {
  type AckFailureCause,
  ackFailureCauses,
  type BatchOutcome,
  batchOutcomes,
} from "../../publish/outcomes.ts";
import { type LostCause, lostCauses } from "../../quarantine/quarantine.ts";
import {
  type PassedKind,
  type PassedOutcome,
  passedKinds,
  passedOutcomes,
} from "../../upstream/passed-head.ts";
import { type MetricName, metricTable } from "./metric-table.ts";

const routes: readonly RouteLabel[] = [...eventRoutes, ...sdkLabels, "other"];
const abortPhases = ["head", "body", "answer"] as const satisfies readonly RequestPhase[];
const outcomeOfReason = {
  none: "stored",
  duplicate: "duplicate",
  performance_event: "removed",
  dropped_by_rule: "filtered",
  quarantined: "filtered",
  no_event: "dropped",
  no_distinct_id: "dropped",
  not_an_object: "dropped",
  no_cookieless_id: "dropped",
  invalid_properties: "error",
  event_name_too_long: "error",
  distinct_id_too_long: "error",
  too_deep: "error",
  number_too_long: "error",
  event_too_large: "error",
  unreadable_event: "error",
  rate_limited: "refused",
  timeout: "unknown",
} as const satisfies Record<EventReason, EventOutcome>;

type EventOutcome =
  /** The event was stored, even if the client received an error. */
  | "stored"
  | "duplicate"
  /** A `$performance_event`. The gateway does not store it, and the answer does not count it. */
  | "removed"
  /** The rules of the project dropped the event or put it into quarantine. */
  | "filtered"
  | "dropped"
  /** The event was dropped, and the answer lists it as an error. */
  | "error"
  /** If the client retries the request, the event is counted again. */
  | "refused"
  | "unknown";

type Gauges = Partial<Record<MetricName, () => number | boolean | Sample[]>>;

const reasons = Object.keys(outcomeOfReason) as EventReason[];
const STATUS_MAX = 599;
const quarantineReasons: readonly QuarantineReason[] = [
  ...(Object.keys(dropTable) as DropCode[]),
  ...itemErrorCodes,
  "rule",
  "schema",
];
const errorCodes = Object.keys(errorTable) as ErrorCode[];
/** These series exist from the first scrape. Otherwise, `rate` would miss the first failure. */
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
  readonly answers: Float64Array;
  readonly seconds: Histogram;
  readonly takesEvents: boolean;
}

/** Measures the delay of the event loop until `close`. */
export class Metrics extends MetricSet<MetricName> {
  readonly #routes = this.#countsOfRoutes();
  readonly #bodyBytes = this.histogram("penstock_request_body_bytes", bytesBounds);
  readonly #problems = this.tally("penstock_problems_total", ["code", errorCodes]);
  readonly #aborted = this.tally("penstock_requests_aborted_total", ["phase", abortPhases]);
  readonly #events = new LabeledCounters(lanes, reasons, (lane, reason) => {
    return { lane, outcome: outcomeOfReason[reason], reason };
  });
  readonly #warnings = this.tally("penstock_warnings_total", ["code", warningCodes]);
  readonly #rejected = this.tally("penstock_rejected_total", ["reason", quarantineReasons]);
  readonly #rejectedLost = this.tally("penstock_rejected_lost_total", ["cause", lostCauses]);
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
    this.show("penstock_build_info", () => buildInfo);
    this.show("penstock_requests_total", () => this.#requestSamples());
    this.show("penstock_events_total", () => this.#events.samples());
    this.show("penstock_workers", () => 1);
    this.show("penstock_worker_restarts_total", () => 0);
    this.show("penstock_event_loop_delay_seconds", () => this.#loopDelay.samples());
  }

  /** Call this once per answer. `bodyBytes` is the size of the body as received. */
  requestFinished(route: RouteLabel, status: number, seconds: number, bodyBytes: number): void {
    const counts = this.#routes[route];
    counts.answers[status]! += 1;
    counts.seconds.observe(seconds);
    if (counts.takesEvents) this.#bodyBytes.observe(bodyBytes);
  }

  /** Call this once per request that gets an error, in addition to `requestFinished`. */
  problemAnswered(code: ErrorCode): void {
    this.#problems.add(1, code);
  }

  /** Call this instead of `requestFinished` if the client has disconnected. */
  requestAborted(phase: RequestPhase): void {
    this.#aborted.add(1, phase);
  }

  requestPassed(kind: PassedKind, outcome: PassedOutcome): void {
    this.#passed.add(1, kind, outcome);
  }

  events(lane: Lane, reason: EventReason, count: number): void {
    this.#events.add(count, lane, reason);
  }

  warnings(code: WarningCode, count: number): void {
    this.#warnings.add(count, code);
  }

  rejectedStored(reason: QuarantineReason, count: number): void {
    this.#rejected.add(count, reason);
  }

  rejectedLost(cause: LostCause, count: number): void {
    this.#rejectedLost.add(count, cause);
  }

  slowPathItems(count: number): void {
    this.#slowPathItems.add(count);
  }

  distinctIdsCut(count: number): void {
    this.#distinctIdsCut.add(count);
  }

  /** Call this when a frame is sent for the first time, but not when it is sent again. */
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

  batchEnded(outcome: BatchOutcome, frames: number): void {
    this.#batches.add(1, outcome);
    this.#batchFrames.observe(frames);
  }

  ackFailed(cause: AckFailureCause): void {
    this.#acksFailed.add(1, cause);
  }

  duplicateFrame(lane: Lane, events: number): void {
    this.#duplicateFrames.add(1, lane);
    this.#duplicateEvents.add(events, lane);
  }

  streamRegressed(lane: Lane, cause: RegressionCause): void {
    this.#streamRegressions.add(1, lane, cause);
  }

  watch(gauges: Gauges): void {
    for (const [name, read] of Object.entries(gauges)) this.show(name as MetricName, read);
  }

  close(): void {
    this.#loopDelay.close();
  }

  #countsOfRoutes(): Readonly<Record<RouteLabel, RouteCounts>> {
    const name = "penstock_request_duration_seconds";
    const seconds = this.histograms(name, requestSecondsBounds, ["route", routes]);
    const countsOf = (route: RouteLabel): RouteCounts => ({
      answers: new Float64Array(STATUS_MAX + 1),
      seconds: seconds[route],
      takesEvents: (eventRoutes as readonly RouteLabel[]).includes(route),
    });
    const each = routes.map((route) => [route, countsOf(route)] as const);
    return Object.fromEntries(each) as Record<RouteLabel, RouteCounts>;
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

const RESOLUTION_MS = 10;
const NANOSECONDS_PER_SECOND = 1e9;

function watchEventLoopDelay() {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return {
    /** Returns delays in seconds, measured since the previous call. */
    samples(): Sample[] {
      const samples = [
        { labels: { stat: "p50" }, value: delaySeconds(histogram.percentile(50)) },
        { labels: { stat: "p99" }, value: delaySeconds(histogram.percentile(99)) },
        { labels: { stat: "max" }, value: histogram.count === 0 ? 0 : delaySeconds(histogram.max) },
      ];
      histogram.reset();
      return samples;
    },
    close: () => histogram.disable(),
  };
}

/** Subtracts the sampling interval, because Node's values include it. */
function delaySeconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / NANOSECONDS_PER_SECOND - RESOLUTION_MS / 1_000);
}
