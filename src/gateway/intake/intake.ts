// Processes one request from its whole body to its answer: scan, key, rules, lines, frames,
// PubAcks. The work on a large body is divided among many event loop iterations, so that other
// requests need not wait for it.

import { Buffer } from "node:buffer";
import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { RetryMemory } from "../../platform/base/retry-memory.ts";
import type { RecordWriter } from "../../records/record.ts";
import { type BackgroundScanner, Header, ScanStatus } from "../../records/table.ts";
import type { BodyHint, Exchange, Intake, OwnedBody, Peek, WholeBody } from "../http/port.ts";
import type { ProjectLookup } from "../projects/project.ts";
import type { Publisher } from "../publish/port.ts";
import type { ProjectShares } from "../streams/project-shares.ts";
import { type Arrival, Arrivals } from "./arrivals.ts";
import { Checks, RefusalHints } from "./checks.ts";
import { scanProblem } from "./envelope.ts";
import { Typos } from "./hints.ts";
import { ItemTaker } from "./items.ts";
import { LoopShare } from "./loop-share.ts";
import { createPeek } from "./peek.ts";
import { plainProtocol } from "./plain-protocol.ts";
import { noQuarantine, type QuarantineTaker } from "./quarantine-port.ts";
import { isRepairable, repairedBody } from "./repaired-body.ts";
import { noCaps, type RequestCaps } from "./request-caps.ts";
import { bodyIdOf } from "./request-frames.ts";
import { awaitRoom, Scanners } from "./scanners.ts";
import { type IntakeMetrics, problemOfItems } from "./tally.ts";
import { V1Protocol } from "./v1/protocol.ts";
import { type Protocol, Work, type WorkParts } from "./work.ts";
import {
  endOfSlice,
  fewEventsMax,
  fillsFrames,
  littleBytesMax,
  placedAtOnceBytesMax,
  placingBytesOf,
  rowsAtOnceMax,
  scannedAtOnceBytesMax,
} from "./work-size.ts";

export interface IntakeOptions {
  readonly createScanner: (rows?: number) => BackgroundScanner;
  readonly projects: ProjectLookup;
  readonly publisher: Publisher;
  readonly records: RecordWriter;
  readonly metrics: IntakeMetrics;
  readonly caps?: RequestCaps;
  readonly shares?: ProjectShares;
  readonly clientWarnings?: ClientWarningTaker;
  /** Takes the items that are not stored. Default: they are only counted. */
  readonly quarantine?: QuarantineTaker;
  readonly onBug?: (bug: unknown) => void;
  readonly monotonicMs: () => number;
  readonly workMs?: () => number;
  readonly nextTurn: () => Promise<void>;
}

/**
 * Maximum number of frames of one body in flight. It is limited because frames contain a copy of
 * the body's data.
 */
const framesAheadMax = 8;

export function createIntake(options: IntakeOptions): Intake {
  const taker = new RequestTaker(options);
  return (exchange, body) => taker.take(exchange, body);
}

class RequestTaker {
  readonly #publisher: Publisher;
  readonly #metrics: IntakeMetrics;
  readonly #parts: WorkParts;
  readonly #monotonicMs: () => number;
  readonly #workMs: () => number;
  readonly #ownScanner: BackgroundScanner;
  readonly #items: ItemTaker;
  readonly #peek: Peek;
  readonly #hints: RefusalHints;
  readonly #checks: Checks;
  readonly #share: LoopShare;
  readonly #arrivals: Arrivals;
  readonly #scanners: Scanners;
  readonly #failedBodies: RetryMemory<string>;

  constructor(options: IntakeOptions) {
    const { createScanner, projects, publisher, records, metrics, shares } = options;
    const { clientWarnings, monotonicMs, nextTurn, caps = noCaps, onBug = () => {} } = options;
    const { quarantine = noQuarantine } = options;
    const typos = new Typos();
    this.#publisher = publisher;
    this.#metrics = metrics;
    this.#parts = { publisher, records, metrics, shares, clientWarnings, quarantine };
    this.#monotonicMs = monotonicMs;
    this.#workMs = options.workMs ?? monotonicMs;
    this.#ownScanner = createScanner(rowsAtOnceMax);
    this.#items = new ItemTaker({
      slowScanner: createScanner(),
      createScanner,
      records,
      typos,
      onBug,
    });
    this.#peek = createPeek(projects);
    const hints = new RefusalHints(typos, clientWarnings);
    this.#hints = hints;
    this.#checks = new Checks({ projects, publisher, metrics, caps, shares, hints, monotonicMs });
    this.#share = new LoopShare({ nextTurn, monotonicMs });
    this.#failedBodies = new RetryMemory(monotonicMs);
    this.#arrivals = new Arrivals(monotonicMs);
    this.#scanners = new Scanners({ createScanner, publisher, monotonicMs });
  }

  /**
   * A small body is processed immediately. If the current iteration has no time left, any other
   * body is processed in a later one.
   */
  take(exchange: Exchange, body: WholeBody): Promise<void> | undefined {
    const { length } = body.bytes;
    if (length <= littleBytesMax) return this.#takeNow(exchange, body);
    if (length > scannedAtOnceBytesMax || this.#share.isSpent)
      return this.#takeLater(exchange, body);
    const beganMs = this.#workMs();
    const rest = this.#takeNow(exchange, body);
    this.#share.spend(this.#workMs() - beganMs);
    return rest;
  }

  #takeNow(exchange: Exchange, body: WholeBody): Promise<void> | undefined {
    const scanner = this.#ownScanner;
    const { bytes } = body;
    const work = new Work(exchange, this.#protocolOf(exchange), { bytes, scanner });
    let problem = this.#checks.ofStore(bytes.length);
    if (problem === undefined) {
      const status = scanner.scanAtOnce(work.body);
      if (status === ScanStatus.Unexplained || isRepairable(status, scanner))
        return this.#takeLater(exchange, body);
      problem = this.#checks.open(work, status);
    }
    if (problem !== undefined) {
      exchange.answerProblem(problem);
      return undefined;
    }
    const isCounted = bytes.length <= littleBytesMax && work.cost.events > fewEventsMax;
    const { lane, project, cost } = work;
    const placingBytes =
      placingBytesOf(work.body.length, cost.events, work.protocol.rewritesItems) +
      (work.rules?.workOf(work.body.length, cost.events) ?? 0);
    if (
      placingBytes > Math.min(placedAtOnceBytesMax, this.#publisher.frameBytesMax) ||
      (isCounted && this.#share.isSpent) ||
      (lane === "historical" && this.#arrivals.mustWait(project.id))
    )
      return this.#takeLater(exchange, body, hintOf(work));

    problem = work.protocol.readEvents(work) ?? this.#checks.admitNow(work);
    if (problem !== undefined) {
      exchange.answerProblem(problem);
      return undefined;
    }
    const beganMs = isCounted ? this.#workMs() : 0;
    try {
      work.begin(this.#parts, undefined);
      this.#items.takeRows(work, 0, work.cost.events);
      work.handOver();
    } catch (bug) {
      work.abort();
      throw bug;
    }
    if (isCounted) this.#share.spend(this.#workMs() - beganMs);
    this.#finish(work);
    return undefined;
  }

  #takeLater(
    exchange: Exchange,
    body: WholeBody,
    hint: BodyHint = exchange.hint ?? this.#peek(body.bytes, true, exchange.v1?.apiKey),
  ): Promise<void> | undefined {
    const problem = this.#checks.beforeScan(hint, exchange, body.bytes.length);
    if (problem === undefined) return this.#takeInTurns(exchange, owned(body), hint);
    exchange.answerProblem(problem);
    return undefined;
  }

  async #takeInTurns(exchange: Exchange, body: OwnedBody, hint: BodyHint): Promise<void> {
    const arrival = this.#arrivals.arrive(hint, {
      bytes: body.bytes.length,
      deadlineMs: exchange.deadlineMs,
    });
    try {
      const problem = await this.#takeTurn(exchange, body, arrival);
      if (problem !== undefined) exchange.answerProblem(problem);
    } finally {
      this.#arrivals.leave(arrival);
    }
  }

  async #takeTurn(
    exchange: Exchange,
    { bytes }: OwnedBody,
    arrival: Arrival,
  ): Promise<Problem | undefined> {
    let work: Work | undefined;
    for (;;) {
      if (arrival.lane === "historical" && arrival.projectId !== undefined)
        await this.#arrivals.turnOf(arrival);
      const scanner = await this.#scanners.take(arrival);
      if (scanner === undefined) return queueTimedOut;
      try {
        work ??= new Work(exchange, this.#protocolOf(exchange), { bytes, scanner });
        work.scanner = scanner;
        const problem = this.#checks.ofStore(bytes.length) ?? (await this.#scanInBackground(work));
        if (problem !== undefined) return problem;
        if (isAsHinted(arrival, work) || this.#mayContinue(arrival, work))
          return await this.#placeInTurns(work, arrival);
      } finally {
        this.#scanners.give(arrival);
      }
    }
  }

  async #scanInBackground(work: Work): Promise<Problem | undefined> {
    const { body, scanner } = work;
    const status = await scanner.scanInBackground(body);
    if (!isRepairable(status, scanner)) return this.#checks.open(work, status);
    const problem = scanProblem(status, work);
    if (!work.exchange.hold(scanner.table[Header.RepairedBytes]!)) return noRoomToRepair;
    const repaired = await repairedBody(body, scanner, this.#share);
    const statusThen = await scanner.scanInBackground(repaired.body);
    if (statusThen !== ScanStatus.Ok) return problem;
    work.body = repaired.body;
    work.repaired = repaired;
    return this.#checks.open(work, statusThen);
  }

  #mayContinue(arrival: Arrival, work: Work): boolean {
    this.#arrivals.update(arrival, hintOf(work));
    return (
      this.#scanners.keep(arrival) &&
      (work.lane === "live" || this.#arrivals.turnOf(arrival) === undefined)
    );
  }

  async #placeInTurns(work: Work, arrival: Arrival): Promise<Problem | undefined> {
    const { exchange, protocol } = work;
    const lateness = () => this.#checks.ofDeadline(exchange);
    const problem = (await protocol.readEventsInTurns(work, lateness)) ?? this.#checks.admit(work);
    if (problem !== undefined) return problem;
    try {
      const isNamed = protocol.retriesWhole && fillsFrames(work, this.#publisher);
      const failed = this.#failedBodies;
      const body = isNamed ? { id: await bodyIdOf(work, this.#share), failed } : undefined;
      work.begin(this.#parts, body);
      work.times.beganMs = this.#monotonicMs();
      const { pending } = work;
      for (let rows = work.rowCount; rows > 0; rows = pending.failed ? 0 : await work.nextRows())
        await this.#placeRows(work, arrival, rows);
      work.handOver();
    } catch (bug) {
      work.abort();
      throw bug;
    }
    this.#finish(work);
    return undefined;
  }

  async #placeRows(work: Work, arrival: Arrival, rows: number): Promise<void> {
    const { exchange, pending, protocol } = work;
    const firstItem = work.table[Header.FirstItem]!;
    let start = 0;
    const slice = (): void => {
      if (pending.failed) return;
      if (this.#checks.ofDeadline(exchange) !== undefined) {
        pending.fail("timeout", latenessOf(work, firstItem + start, this.#monotonicMs()));
        return;
      }
      const beganMs = this.#monotonicMs();
      const end = endOfSlice(work.table, start, {
        rows,
        isSlow: protocol.rewritesItems,
        rules: work.rules,
      });
      this.#items.takeRows(work, start, end);
      work.frames.endTurn();
      start = end;
      work.times.eventsMs += this.#monotonicMs() - beganMs;
    };
    while (start < rows && !pending.failed) {
      const room = pending.framesAtMost(framesAheadMax);
      if (room !== undefined) {
        const beganMs = this.#monotonicMs();
        await awaitRoom(work, room, { scanners: this.#scanners, arrival, firstItem });
        work.times.storeMs += this.#monotonicMs() - beganMs;
      }
      await this.#share.slice(slice);
    }
  }

  #protocolOf({ v1 }: Exchange): Protocol {
    return v1 === undefined ? plainProtocol : new V1Protocol(v1, this.#share);
  }

  #finish(work: Work): void {
    const { exchange, lane, cost, taken, tally, pending } = work;
    if (tally.slowPathItems > 0) this.#metrics.slowPathItems(tally.slowPathItems);
    // If the request has failed, the scanner may already contain the table of another body.
    if (tally.dropped > 0 && !pending.failed) this.#hints.noteLibrary(work);
    if (!tally.answersInPart && tally.errorsTotal > 0 && tally.errorsTotal === cost.events) {
      tally.countReported(lane, this.#metrics, true);
      tally.quarantine?.settle(true);
      taken.countDropped(tally.dropped);
      exchange.span?.counted(0, tally.dropped);
      exchange.answerProblem(problemOfItems(tally));
    } else {
      pending.placed();
    }
  }
}

function owned(body: WholeBody): OwnedBody {
  return body.memory === "owned" ? body : { memory: "owned", bytes: Buffer.from(body.bytes) };
}

function hintOf({ project, lane }: Work): BodyHint {
  return { projectId: project.id, lane, meter: project.meter };
}

function isAsHinted({ projectId, lane }: Arrival, work: Work): boolean {
  return projectId === work.project.id && lane === work.lane;
}

/**
 * Returns the detail of a request that timed out after `events` of its events; "" if the store took
 * most of the time.
 */
function latenessOf({ cost, rules, times }: Work, events: number, nowMs: number): string {
  const allMs = nowMs - times.beganMs;
  if (2 * times.storeMs > allMs) return "";
  const what = rules === undefined ? "these events" : "these events and the project's rules";
  const spent = [
    `${Math.round(times.eventsMs)} ms for ${what}`,
    `${Math.round(times.storeMs)} ms waiting for the store`,
    `${Math.round(allMs - times.eventsMs - times.storeMs)} ms for other requests`,
  ];
  return `The request timed out after ${events} of its ${cost.events} events (${spent.join(", ")}), so the first of them may be stored: send fewer events per request`;
}

const noRoomToRepair: Problem = {
  code: "overloaded",
  detail:
    "The gateway has no memory left to replace the body's malformed bytes: its budget of bytes in flight is used up",
};
const queueTimedOut: Problem = {
  code: "overloaded",
  detail: "Too many large bodies are waiting before this one",
};
