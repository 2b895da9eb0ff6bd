// The story of one request, from its whole body to its answer: scan, key, rules, lines, frames,
// PubAcks. A small body goes through in one turn of the event loop; a large one is scanned in the
// thread pool and placed in slices, so that nobody waits for it. Holds the branching; the helpers
// compute. Must not know HTTP, N-API or NATS.

import type { Buffer } from "node:buffer";
import type { Problem } from "../base/errors.ts";
import type {
  BodyHint,
  ClientWarningTaker,
  Exchange,
  Intake,
  ProjectLookup,
  ProjectShares,
  Publisher,
} from "../base/types.ts";
import { type RecordWriter, recordsBytesMax } from "../events/record.ts";
import { type BackgroundScanner, Header, ScanStatus } from "../scan/table.ts";
import { type Arrival, createArrivals } from "./arrivals.ts";
import { bodyIdOf } from "./body-id.ts";
import { withoutMark } from "./byte-order-mark.ts";
import { createMending } from "./details/mending.ts";
import { Slips } from "./details/slips.ts";
import { createEarlyLook } from "./early-look.ts";
import { readEnvelope, scanProblem } from "./envelope.ts";
import { createItemTaker } from "./items.ts";
import { LoopShare } from "./loop-share.ts";
import {
  nextRows,
  nothingKnown,
  type OpenRequest,
  type Placing,
  rowCount,
  type Scanned,
  startPlacing,
} from "./placing.ts";
import { isRepairable, repairedBody } from "./repaired-body.ts";
import { noCaps, overCaps, overRate, type RequestCaps } from "./request-caps.ts";
import { ScannerQueue } from "./scanner-queue.ts";
import { type IntakeMetrics, problemOfItems } from "./tally.ts";
import { readUuids, readUuidsInTurns, readV1Envelope, readV1Head } from "./v1/request.ts";
import {
  endOfSlice,
  fewEventsMax,
  kept,
  littleBytesMax,
  placedAtOnceMax,
  rowsAtOnceMax,
  scannedAtOnceBytesMax,
  slowWorkOf,
  workOf,
} from "./work.ts";

export interface IntakeOptions {
  /** `rows`: of its table; more than most bodies have unless given. */
  readonly createScanner: (rows?: number) => BackgroundScanner;
  readonly projects: ProjectLookup;
  readonly publisher: Publisher;
  readonly records: RecordWriter;
  readonly metrics: IntakeMetrics;
  readonly caps?: RequestCaps;
  readonly shares?: ProjectShares;
  readonly clientWarnings?: ClientWarningTaker;
  /** Hears of an event that a bug made fail, of each kind of bug once. */
  readonly onBug?: (bug: unknown) => void;
  /** Monotonic milliseconds; the clock of the deadlines. */
  readonly nowMs: () => number;
  /**
   * Milliseconds for which this thread had a processor; by them what a turn has had is counted.
   * `nowMs` unless given.
   */
  readonly workMs?: () => number;
  /** Fulfilled in a later turn of the event loop, after other work had its chance. */
  readonly nextTurn: () => Promise<void>;
}

/**
 * Frames of a large body that wait for their outcome; it is placed no faster than it is stored, so
 * that it is not in memory twice.
 */
const framesAheadMax = 8;

export function createIntake(options: IntakeOptions): Intake {
  const { createScanner, projects, publisher, records, metrics, clientWarnings, nowMs, nextTurn } =
    options;
  const { caps = noCaps, shares, onBug = () => {}, workMs = nowMs } = options;
  const ownScanner = createScanner(rowsAtOnceMax);
  const slips = new Slips();
  const mending = createMending(slips, clientWarnings);
  const items = createItemTaker({ slowScanner: createScanner(), records, slips, onBug });
  const look = createEarlyLook(projects);
  const share = new LoopShare({ nextTurn, nowMs });
  const arrivals = createArrivals(nowMs);
  const scanners = new ScannerQueue({ createScanner, nowMs });
  const parts = { publisher, records, metrics, shares, share, clientWarnings };

  /** Little bodies of few events go through at once, of others as many as the turn has time for. */
  function intake(exchange: Exchange, received: Buffer): Promise<void> | undefined {
    const { length } = received;
    if (length <= littleBytesMax) return takeAtOnce(exchange, received);
    if (length > scannedAtOnceBytesMax || share.isSpent) {
      return takeInTurns(exchange, kept(received), whoseOf(exchange, received));
    }
    const beganMs = workMs();
    const work = takeAtOnce(exchange, received);
    share.spend(workMs() - beganMs);
    return work;
  }

  /**
   * From scan to frames in this turn, unless it turns out to be more than a little work, or others
   * are first.
   */
  function takeAtOnce(exchange: Exchange, received: Buffer): Promise<void> | undefined {
    const refused = refusedNow();
    if (refused !== undefined) {
      exchange.answerProblem(refused);
      return undefined;
    }
    const body = withoutMark(received);
    const status = ownScanner.scan(body);
    if (isRepairable(status, ownScanner))
      return takeInTurns(exchange, kept(received), whoseOf(exchange, received));
    const markBytes = received.length - body.length;
    const request = openRequest(exchange, { body, markBytes, scanner: ownScanner }, status);
    if ("code" in request) {
      exchange.answerProblem(request);
      return undefined;
    }
    const plainWork = workOf(body.length, request.events);
    const work = request.v1 === undefined ? plainWork : plainWork + slowWorkOf(body.length);
    const isCounted = received.length <= littleBytesMax && request.events > fewEventsMax;
    const isTooMuch =
      work > placedAtOnceMax || work > publisher.frameBytesMax || (isCounted && share.isSpent);
    if (isTooMuch || mustWait(request)) {
      return takeInTurns(exchange, kept(received), {
        projectId: request.project.id,
        lane: request.lane,
      });
    }
    const known = request.v1 === undefined ? nothingKnown : readUuids(request);
    const overrun =
      "code" in known ? known : isLateAtOnce(exchange) ? tooLate : overLimits(request);
    if (overrun !== undefined || "code" in known) {
      if (overrun !== undefined) exchange.answerProblem(overrun);
      return undefined;
    }
    const placing = startPlacing(request, parts, known);
    const beganMs = isCounted ? workMs() : 0;
    try {
      items.takeRows(placing, 0, request.events);
    } catch (bug) {
      giveUp(placing);
      throw bug;
    }
    if (isCounted) share.spend(workMs() - beganMs);
    finish(exchange, placing);
    return undefined;
  }

  /** What came in one piece has just got its deadline. */
  function isLateAtOnce(exchange: Exchange): boolean {
    return exchange.hint !== undefined && isLate(exchange);
  }

  function whoseOf(exchange: Exchange, received: Buffer): BodyHint {
    return exchange.hint ?? look(received, true, exchange.v1?.apiKey);
  }

  /** History keeps its order: what came before and is still being placed goes first. */
  function mustWait({ lane, project }: OpenRequest): boolean {
    return lane === "historical" && arrivals.mustWait(project.id);
  }

  /** The same in many turns, with the scan in the thread pool. */
  async function takeInTurns(exchange: Exchange, received: Buffer, whose: BodyHint): Promise<void> {
    const arrival = arrivals.arrive(whose, {
      bytes: received.length,
      deadlineMs: exchange.deadlineMs,
    });
    try {
      const problem = await scanInTurn(exchange, received, arrival);
      if (problem !== undefined) exchange.answerProblem(problem);
    } finally {
      arrivals.leave(arrival);
    }
  }

  /**
   * Waits for its turn, without a scanner: as long as the first reading, or a hint before it, says
   * whose the body is.
   */
  async function scanInTurn(
    exchange: Exchange,
    received: Buffer,
    arrival: Arrival,
  ): Promise<Problem | undefined> {
    const body = withoutMark(received);
    const markBytes = received.length - body.length;
    for (;;) {
      if (arrival.lane === "historical" && arrival.projectId !== undefined)
        await arrivals.turnOf(arrival);
      const scanner = await scanners.take(arrival);
      if (scanner === undefined) return tooManyBefore;
      try {
        const request = refusedNow() ?? (await scanWhole(exchange, { body, markBytes, scanner }));
        if ("code" in request) return request;
        if (isMine(arrival, request) || mayGoOn(arrival, request))
          return await placeInTurns(exchange, request);
      } finally {
        scanners.give(arrival, scanner);
      }
    }
  }

  /**
   * What is not UTF-8 is scanned again with U+FFFD in its place. If it is no JSON then either, the
   * first scan's word counts.
   */
  async function scanWhole(exchange: Exchange, scanned: Scanned): Promise<OpenRequest | Problem> {
    const { body, scanner } = scanned;
    const status = await scanner.scanInBackground(body);
    if (!isRepairable(status, scanner)) return openRequest(exchange, scanned, status);
    const problem = scanProblem(status, scanned);
    const repaired = await repairedBody(body, scanner, share);
    const again = await scanner.scanInBackground(repaired.body);
    return again === ScanStatus.Ok
      ? openRequest(exchange, { ...repaired, scanner }, again)
      : problem;
  }

  /**
   * The scan says otherwise, or more: whether the body has its turn all the same. Else it waits for
   * it, and is scanned again.
   */
  function mayGoOn(arrival: Arrival, { project, lane }: OpenRequest): boolean {
    arrivals.know(arrival, { projectId: project.id, lane });
    return scanners.keep(arrival) && (lane === "live" || arrivals.turnOf(arrival) === undefined);
  }

  async function placeInTurns(
    exchange: Exchange,
    request: OpenRequest,
  ): Promise<Problem | undefined> {
    const known = request.v1 === undefined ? nothingKnown : await readUuidsInTurns(request, share);
    if ("code" in known) return known;
    const overrun = isLate(exchange) ? tooLate : overLimits(request);
    if (overrun !== undefined) return overrun;
    const bodyId =
      request.v1 === undefined && fillsFrames(request) ? await bodyIdOf(request, share) : undefined;
    const placing = startPlacing(request, parts, { ...known, bodyId });
    const { pending, scanner, frames } = placing;
    try {
      for (
        let rows = rowCount(placing);
        rows > 0;
        rows = pending.failed ? 0 : await nextRows(placing)
      ) {
        let start = 0;
        const slice = (): void => {
          if (isLate(exchange)) {
            pending.fail("timeout");
            return;
          }
          const end = endOfSlice(scanner.table, start, { rows, isSlow: request.v1 !== undefined });
          items.takeRows(placing, start, end);
          frames.endTurn();
          start = end;
        };
        while (start < rows && !pending.failed) {
          await pending.framesAtMost(framesAheadMax);
          await share.slice(slice);
        }
      }
    } catch (bug) {
      giveUp(placing);
      throw bug;
    }
    finish(exchange, placing);
    return undefined;
  }

  /** A bug came up. Whoever catches it answers 503. */
  function giveUp({ frames, pending }: Placing): void {
    frames.abandon();
    pending.abandon();
  }

  function refusedNow(): Problem | undefined {
    const code = publisher.refusal();
    return code === undefined ? undefined : { code, detail: "Events cannot be stored now" };
  }

  /**
   * What is stored past its deadline is told "unknown" at the best, and its retry stores it again.
   */
  function isLate({ deadlineMs }: Exchange): boolean {
    return nowMs() >= deadlineMs;
  }

  /** Reads what a scan found: a request with a project and a lane, or what is wrong with it. */
  function openRequest(
    exchange: Exchange,
    scanned: Scanned,
    status: ScanStatus,
  ): OpenRequest | Problem {
    const { body, scanner, malformed } = scanned;
    if (status !== ScanStatus.Ok) return scanProblem(status, scanned);
    const v1 = exchange.v1 === undefined ? undefined : readV1Head(exchange.v1);
    if (v1 !== undefined && "code" in v1) return v1;
    const envelope =
      exchange.v1 === undefined
        ? readEnvelope(body, scanner.table, projects)
        : readV1Envelope({ body, table: scanner.table }, exchange.v1.apiKey, projects);
    if ("code" in envelope) return mending.ofEnvelope(envelope, exchange, scanned);
    exchange.projectId = envelope.project.id;
    const { lane, project } = envelope;
    const full = shares?.refusalOf(lane, project.id);
    if (full !== undefined) return full;
    const events = scanner.table[Header.ItemCount]!;
    const bytes = body.length;
    const eventsTaken = 0;
    const bytesTaken = 0;
    const request = {
      exchange,
      body,
      malformed,
      scanner,
      lane,
      project,
      v1,
      events,
      bytes,
      eventsTaken,
      bytesTaken,
    };
    return overCaps(request, caps) ?? request;
  }

  /**
   * Holds the request against what its stream is fit for, and what its project may send: once a
   * request, as soon as the project is known.
   */
  function overLimits(request: OpenRequest): Problem | undefined {
    const unfit = publisher.refusalOf(request.lane, request.project.id);
    if (unfit !== undefined) return unfit;
    const waitMs = request.project.meter.admit(request);
    if (waitMs === 0) return undefined;
    mending.noteLibrary(request.exchange, request);
    metrics.events(request.lane, "rate_limited", request.events);
    return overRate(request, waitMs);
  }

  /**
   * More lines than a frame takes: the request gets frames of its own. Decided by the body alone,
   * so a retry of it is placed the same way.
   */
  function fillsFrames({ body, events }: OpenRequest): boolean {
    return recordsBytesMax(body.length, events) > publisher.frameBytesMax;
  }

  /**
   * All lines are placed: the request is answered when its frames are settled, or now if it has
   * none.
   */
  function finish(exchange: Exchange, placing: Placing): void {
    const { lane, project, scanner, tally, pending, frames } = placing;
    if (pending.failed) frames.abandon();
    else frames.finish();
    tally.countWork(metrics);
    if (tally.dropped > 0) mending.noteLibrary(exchange, placing);
    if (
      !tally.answersInPart &&
      tally.errorsTotal > 0 &&
      tally.errorsTotal === scanner.table[Header.ItemCount]
    ) {
      tally.countTold(lane, metrics, true);
      project.meter.countDropped(tally.dropped, pending);
      exchange.answerProblem(problemOfItems(tally));
    } else {
      pending.placed();
    }
  }

  return intake;
}

function isMine({ projectId, lane }: Arrival, request: OpenRequest): boolean {
  return projectId === request.project.id && lane === request.lane;
}

const tooLate: Problem = {
  code: "timeout",
  detail: "The time for the request was over before any of it was stored: send it again",
};
const tooManyBefore: Problem = {
  code: "overloaded",
  detail: "Too many large bodies came before this one",
};
