// The story of one request, from its whole body to its answer: scan, key, rules, lines, frames, PubAcks. A small body goes through in
// one turn of the event loop; a large one is scanned in the thread pool and placed in slices, so that nobody waits for it.
// Holds the branching; the helpers compute. Must not know HTTP, N-API or NATS.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { ItemErrorCode, Problem } from "../errors.ts";
import { type RecordWriter, recordOverheadBytesMax, recordsBytesMax } from "../events/record.ts";
import { type BackgroundScanner, Header, Row, ScanStatus } from "../scan/table.ts";
import type {
  BodyHint,
  Exchange,
  Intake,
  Lane,
  MeteredProject,
  ProjectLookup,
  Publisher,
  RemarkTaker,
} from "../types.ts";
import { type Arrival, createArrivals } from "./arrivals.ts";
import { createEarlyLook } from "./early-look.ts";
import { readEnvelope, scanProblem } from "./envelope.ts";
import { createItemTaker, isPlain, type Job } from "./items.ts";
import { LoopShare } from "./loop-share.ts";
import { type PendingOf, PendingRequest } from "./pending-request.ts";
import { OwnFrames, SharedFrames } from "./request-frames.ts";
import { ScannerQueue } from "./scanner-queue.ts";
import { type IntakeMetrics, Tally } from "./tally.ts";

export interface IntakeOptions {
  /** `rows`: of its table; more than most bodies have unless given. */
  readonly createScanner: (rows?: number) => BackgroundScanner;
  readonly projects: ProjectLookup;
  readonly publisher: Publisher;
  readonly records: RecordWriter;
  readonly metrics: IntakeMetrics;
  readonly remarks?: RemarkTaker;
  /** Hears of an event that a bug made fail, of each kind of bug once. */
  readonly onBug?: (bug: unknown) => void;
  /** Monotonic milliseconds; the clock of the deadlines. */
  readonly nowMs: () => number;
  /** Fulfilled in a later turn of the event loop, after other work had its chance. */
  readonly nextTurn: () => Promise<void>;
}

/** A longer body is scanned in the thread pool. On the event loop, of bytes made to that end, this many take 0.8 ms. */
export const scannedAtOnceBytesMax = 131_072;
/** A body from here on lies in memory of its own until the intake is done with it; of a shorter one a copy is kept. */
export const borrowedBytesMax = 1_048_576;
/** What is placed in the turn in which it came, as `workOf` counts; more goes in slices. Some 0.5 ms. */
const placedAtOnceMax = 524_288;
/** What a request may always do at once, however much others did in the same turn. */
const littleBytesMax = 16_384;
/** A scan of all kinds of bodies and the reading of its table, against copying as many bytes. */
const scanFactor = 4;
/** Rows of the table that serves the bodies placed at once. */
const rowsAtOnceMax = placedAtOnceMax / recordOverheadBytesMax;
/** A slice of a larger body: some 0.4 ms. */
const sliceMax = 524_288;
/** Hashing, against placing as many bytes. */
const hashedBytesPerSlice = 1_048_576;
/** A byte on the slow path takes about as long as this many that are copied. */
const slowPathFactor = 32;
/** Frames of a large body that wait for their outcome; it is placed no faster than it is stored, so that it is not in memory twice. */
const framesAheadMax = 8;

/** A request whose body turned out to be one: its lines can be placed. */
interface OpenRequest extends PendingOf {
  readonly body: Buffer;
  /** Holds the table of the body. */
  readonly scanner: BackgroundScanner;
}

/** A request whose lines are being placed. */
interface Placing extends Job {
  readonly lane: Lane;
  readonly project: MeteredProject;
  readonly pending: PendingRequest;
}

export function createIntake(options: IntakeOptions): Intake {
  const { createScanner, projects, publisher, records, metrics, remarks, nowMs, nextTurn, onBug = () => {} } = options;
  const ownScanner = createScanner(rowsAtOnceMax);
  const items = createItemTaker({ slowScanner: createScanner(), publisher, records, onBug });
  const look = createEarlyLook(projects);
  const share = new LoopShare(nextTurn);
  const arrivals = createArrivals();
  const scanners = new ScannerQueue({ createScanner, nowMs });

  /** From scan to frames in this turn, unless that is more than a little work, or others are first. */
  function intake(exchange: Exchange, body: Buffer): Promise<void> | undefined {
    const { length } = body;
    if (length > scannedAtOnceBytesMax || (length > littleBytesMax && share.isSpent)) {
      return takeInTurns(exchange, kept(body), exchange.hint ?? look(body, true));
    }
    share.spend(length * scanFactor);
    const request = refusedNow() ?? openRequest(exchange, { body, scanner: ownScanner }, ownScanner.scan(body));
    if ("code" in request) {
      exchange.answerProblem(request);
      return undefined;
    }
    const work = workOf(length, request.events);
    if (work > placedAtOnceMax || work > publisher.frameBytesMax || mustWait(request)) {
      return takeInTurns(exchange, kept(body), { projectId: request.project.id, lane: request.lane });
    }
    share.spend(work);
    const overrun = overLimits(request);
    if (overrun !== undefined) {
      exchange.answerProblem(overrun);
      return undefined;
    }
    const placing = startPlacing(request);
    try {
      items.takeRows(placing, 0, request.events);
    } catch (bug) {
      giveUp(placing);
      throw bug;
    }
    finish(exchange, placing);
    return undefined;
  }

  /** History keeps its order: what came before and is still being placed goes first. */
  function mustWait({ lane, project }: OpenRequest): boolean {
    return lane === "historical" && arrivals.mustWait(project.id);
  }

  /** The same in many turns, with the scan in the thread pool. */
  async function takeInTurns(exchange: Exchange, body: Buffer, whose: BodyHint): Promise<void> {
    const arrival = arrivals.arrive(whose, { bytes: body.length, deadlineMs: exchange.deadlineMs });
    try {
      const problem = await scanInTurn(exchange, body, arrival);
      if (problem !== undefined) exchange.answerProblem(problem);
    } finally {
      arrivals.leave(arrival);
    }
  }

  /** Waits for its turn, without a scanner: as long as the first reading, or a hint before it, says whose the body is. */
  async function scanInTurn(exchange: Exchange, body: Buffer, arrival: Arrival): Promise<Problem | undefined> {
    for (;;) {
      if (arrival.lane === "historical" && arrival.projectId !== undefined) await arrivals.turnOf(arrival);
      const scanner = await scanners.take(arrival);
      if (scanner === undefined) return tooManyBefore;
      try {
        const request = refusedNow() ?? openRequest(exchange, { body, scanner }, await scanner.scanInBackground(body));
        if ("code" in request) return request;
        if (isMine(arrival, request) || mayGoOn(arrival, request)) return await placeInTurns(exchange, request);
      } finally {
        scanners.give(arrival, scanner);
      }
    }
  }

  /** The scan says otherwise, or more: whether the body has its turn all the same. Else it waits for it, and is scanned again. */
  function mayGoOn(arrival: Arrival, { project, lane }: OpenRequest): boolean {
    arrivals.know(arrival, { projectId: project.id, lane });
    return scanners.keep(arrival) && (lane === "live" || arrivals.turnOf(arrival) === undefined);
  }

  async function placeInTurns(exchange: Exchange, request: OpenRequest): Promise<Problem | undefined> {
    const overrun = overLimits(request);
    if (overrun !== undefined) return overrun;
    const placing = startPlacing(request, fillsFrames(request) ? await hashInTurns(request) : undefined);
    const { pending, scanner, frames } = placing;
    try {
      for (let rows = rowCount(placing); rows > 0; rows = await moreRows(placing)) {
        let start = 0;
        const slice = (): number => {
          const end = endOfSlice(scanner.table, start, rows);
          items.takeRows(placing, start, end.row);
          frames.endTurn();
          start = end.row;
          return end.work;
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

  /** Reads what a scan found: a request with a project and a lane, or what is wrong with it. */
  function openRequest(exchange: Exchange, scanned: Scanned, status: ScanStatus): OpenRequest | Problem {
    const { body, scanner } = scanned;
    if (status !== ScanStatus.Ok) return scanProblem(status, scanner.table);
    const envelope = readEnvelope(body, scanner.table, projects);
    if ("code" in envelope) return envelope;
    exchange.projectId = envelope.project.id;
    const { lane, project } = envelope;
    const events = scanner.table[Header.ItemCount]!;
    return { exchange, body, scanner, lane, project, events, bytes: body.length, eventsTaken: 0, bytesTaken: 0 };
  }

  /** Holds the request against what its project may send: once a request, as soon as the project is known. */
  function overLimits(request: OpenRequest): Problem | undefined {
    const waitMs = request.project.meter.admit(request);
    if (waitMs === 0) return undefined;
    metrics.events(request.lane, "rate_limited", request.events);
    return {
      code: "rate_limited",
      detail: "The project sends more than it may: try again later",
      retryAfterMs: waitMs,
    };
  }

  /** More lines than a frame takes: the request gets frames of its own. Decided by the body alone, so a retry of it is placed the same way. */
  function fillsFrames({ body, events }: OpenRequest): boolean {
    return recordsBytesMax(body.length, events) > publisher.frameBytesMax;
  }

  /** With a name for the body, its lines go to frames of their own. */
  function startPlacing(request: OpenRequest, bodyId?: string): Placing {
    const { exchange, body, scanner, lane, project } = request;
    const { receivedAtMs, clientAddress, deadlineMs } = exchange;
    const tally = new Tally();
    const pending = new PendingRequest(request, tally, metrics);
    const place = { publisher, lane, project, pending, deadlineMs };
    return {
      body,
      scanner,
      lane,
      project,
      historical: lane === "historical",
      tally,
      pending,
      record: records.begin({ projectId: project.id, lane, receivedAtMs, clientAddress }),
      frames: bodyId === undefined ? new SharedFrames(place) : new OwnFrames(place, bodyId),
    };
  }

  /** All lines are placed: the request is answered when its frames are settled, or now if it has none. */
  function finish(exchange: Exchange, { lane, project, scanner, tally, pending, frames }: Placing): void {
    if (pending.failed) frames.abandon();
    else frames.finish();
    tally.countJudged(lane, metrics);
    if (tally.errorsTotal > 0 && tally.errorsTotal === scanner.table[Header.ItemCount]) {
      project.meter.countDropped(tally.dropped, pending);
      exchange.answerProblem(problemOfItems(tally));
    } else {
      if (tally.dropped > 0 && remarks !== undefined) tally.remark(project.id, remarks);
      pending.release();
    }
  }

  async function hashInTurns(request: OpenRequest): Promise<string> {
    const hash = createHash("sha256");
    for (const piece of identifyingPieces(request)) {
      for (let start = 0; start < piece.length; start += hashedBytesPerSlice) {
        await share.slice(() => {
          hash.update(piece.subarray(start, start + hashedBytesPerSlice));
          return sliceMax;
        });
      }
    }
    return hash.digest("base64url");
  }

  return intake;
}

interface Scanned {
  readonly body: Buffer;
  readonly scanner: BackgroundScanner;
}

function rowCount({ scanner }: Job): number {
  return scanner.table[Header.RowCount]!;
}

/** The next rows of a batch that is longer than the table; none once the request cannot come to a 200 any more. */
async function moreRows({ scanner, body, pending }: Placing): Promise<number> {
  const { table } = scanner;
  if (pending.failed || table[Header.FirstItem]! + table[Header.RowCount]! >= table[Header.ItemCount]!) return 0;
  await scanner.scanMoreInBackground(body);
  return table[Header.RowCount]!;
}

/** What placing a body takes, in bytes copied: no more than that, if its items are plain. */
function workOf(bytes: number, events: number): number {
  return bytes + events * recordOverheadBytesMax;
}

/** How far a slice goes from row `start`, by at least one row, and the work that is. */
function endOfSlice(table: Uint32Array, start: number, rows: number): { row: number; work: number } {
  let end = start;
  let work = 0;
  for (; end < rows && work < sliceMax; end++) {
    const row = Header.Words + end * Row.Words;
    const itemBytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
    work += workOf(isPlain({ table, row }) ? itemBytes : itemBytes * slowPathFactor, 1);
  }
  return { row: end, work };
}

/** The body, for longer than this turn. */
function kept(body: Buffer): Buffer {
  return body.length < borrowedBytesMax ? Buffer.from(body) : body;
}

function isMine({ projectId, lane }: Arrival, request: OpenRequest): boolean {
  return projectId === request.project.id && lane === request.lane;
}

/**
 * What names a body among all that are stored: lane, project, and its bytes without the value of `sent_at`, which some clients
 * write anew each time they send the same events.
 */
function identifyingPieces({ lane, project, body, scanner }: OpenRequest): Buffer[] {
  const { table } = scanner;
  const [start, end] = [table[Header.SentAtStart]!, table[Header.SentAtEnd]!];
  return [Buffer.from(`${lane} ${project.id} `), body.subarray(0, start), body.subarray(end)];
}

const tooManyBefore: Problem = { code: "overloaded", detail: "Too many large bodies came before this one" };

/** All items ended in an error: the first one's is the request's. */
function problemOfItems(tally: Tally): Problem {
  const first = tally.errors[0]!;
  // The codes of items are codes of the error table too.
  const code = first.code as ItemErrorCode;
  if (tally.errorsTotal === 1) return { code, detail: first.detail };
  return {
    code,
    detail: `All ${tally.errorsTotal} events are in error`,
    errors: tally.errors,
    errorsTotal: tally.errorsTotal,
  };
}
