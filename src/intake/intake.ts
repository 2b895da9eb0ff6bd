// The story of one request, from its whole body to its answer: scan, key, rules, lines, frames, PubAcks. A small body goes through in
// one turn of the event loop; a large one is scanned in the thread pool and placed in slices, so that nobody waits for it.
// Holds the branching; the helpers compute. Must not know HTTP, N-API or NATS.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { ItemErrorCode, Problem } from "../errors.ts";
import { type RecordWriter, recordsBytesMax } from "../events/record.ts";
import { type BackgroundScanner, Header, Row, ScanStatus } from "../scan/table.ts";
import type { Exchange, Intake, Lane, MeteredProject, ProjectLookup, Publisher, RemarkTaker } from "../types.ts";
import { readEnvelope, scanProblem } from "./envelope.ts";
import { createItemTaker, isPlain, type Job } from "./items.ts";
import { type Arrival, createLargeBodies } from "./large-bodies.ts";
import { type PendingOf, PendingRequest } from "./pending-request.ts";
import { OwnFrames, SharedFrames } from "./request-frames.ts";
import { type IntakeMetrics, Tally } from "./tally.ts";

export interface IntakeOptions {
  readonly createScanner: () => BackgroundScanner;
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

/** Bodies from here on do not go through in one turn of the event loop. Below it, one takes 2 ms at most. */
export const largeBodyBytesMin = 1_048_576;
/** Large bodies that are worked on at a time: one in the thread pool while another is placed. */
const largeScannersMax = 2;
/** What a large body may hold up the event loop for at a time: some 0.3 ms of placing, 0.5 ms of hashing. */
const rowsPerTurnMax = 512;
const bytesPerTurnMax = 524_288;
const hashedBytesPerTurnMax = 1_048_576;
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
  const smallScanner = createScanner();
  const items = createItemTaker({ slowScanner: createScanner(), publisher, records, onBug });
  const largeBodies = createLargeBodies(createScanner, largeScannersMax);

  function intake(exchange: Exchange, body: Buffer): Promise<void> | undefined {
    return body.length < largeBodyBytesMin ? takeSmall(exchange, body) : takeLarge(exchange, body);
  }

  /** From scan to frames in this turn. */
  function takeSmall(exchange: Exchange, body: Buffer): Promise<void> | undefined {
    const request = refusedNow() ?? openRequest(exchange, { body, scanner: smallScanner }, smallScanner.scan(body));
    if ("code" in request) {
      exchange.answerProblem(request);
      return undefined;
    }
    // History keeps its order: what came before and is still being placed goes first.
    if (request.lane === "historical" && largeBodies.mustWait(request.project.id)) {
      return takeLarge(exchange, Buffer.from(body));
    }
    const overrun = overLimits(request);
    if (overrun !== undefined) {
      exchange.answerProblem(overrun);
      return undefined;
    }
    const placing = startPlacing(request, () => hashOf(request));
    try {
      for (let rows = rowCount(placing); rows > 0; rows = moreRows(placing)) items.takeRows(placing, 0, rows);
    } catch (bug) {
      giveUp(placing);
      throw bug;
    }
    finish(exchange, placing);
    return undefined;
  }

  /** The same in many turns, with the scan in the thread pool. */
  async function takeLarge(exchange: Exchange, body: Buffer): Promise<void> {
    const arrival = largeBodies.arrive();
    const scanner = await largeBodies.takeScanner();
    try {
      const problem = await placeLarge(exchange, { body, scanner }, arrival);
      if (problem !== undefined) exchange.answerProblem(problem);
    } finally {
      arrival.leave();
      largeBodies.giveScanner(scanner);
    }
  }

  async function placeLarge(exchange: Exchange, scanned: Scanned, arrival: Arrival): Promise<Problem | undefined> {
    if (nowMs() >= exchange.deadlineMs)
      return { code: "overloaded", detail: "Too many large bodies came before this one" };
    const { body, scanner } = scanned;
    const request = refusedNow() ?? openRequest(exchange, scanned, await scanner.scanInBackground(body));
    if ("code" in request) return request;
    const overrun = overLimits(request);
    if (overrun !== undefined) return overrun;
    arrival.history = request.lane === "historical" ? request.project.id : "";
    if (request.lane === "historical") await largeBodies.turnOf(arrival);
    const bodyId = await hashInTurns(request);
    const placing = startPlacing(request, () => bodyId);
    try {
      for (let rows = rowCount(placing); rows > 0; rows = await moreRowsInBackground(placing)) {
        for (let start = 0, end = 0; start < rows && !placing.pending.failed; start = end) {
          await (placing.pending.framesAtMost(framesAheadMax) ?? nextTurn());
          end = endOfTurn(scanner.table, start, rows);
          items.takeRows(placing, start, end);
          placing.frames.endTurn();
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

  function startPlacing(request: OpenRequest, bodyId: () => string): Placing {
    const { exchange, body, scanner, lane, project, events } = request;
    const { receivedAtMs, clientAddress, deadlineMs } = exchange;
    const tally = new Tally();
    const pending = new PendingRequest(request, tally, metrics);
    const place = { publisher, lane, project, pending, deadlineMs };
    // Decided by the body alone, so that a client's retry of it is placed the same way.
    const linesBytesMax = recordsBytesMax(body.length, events);
    return {
      body,
      scanner,
      lane,
      project,
      historical: lane === "historical",
      tally,
      pending,
      record: records.begin({ projectId: project.id, lane, receivedAtMs, clientAddress }),
      frames: linesBytesMax > publisher.frameBytesMax ? new OwnFrames(place, bodyId()) : new SharedFrames(place),
    };
  }

  /** All lines are placed: the request is answered when its frames are settled, or now if it has none. */
  function finish(exchange: Exchange, { lane, project, scanner, tally, pending, frames }: Placing): void {
    frames.finish();
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
      for (let start = 0; start < piece.length; start += hashedBytesPerTurnMax) {
        await nextTurn();
        hash.update(piece.subarray(start, start + hashedBytesPerTurnMax));
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

function hasMoreRows({ scanner: { table } }: Job): boolean {
  return table[Header.FirstItem]! + table[Header.RowCount]! < table[Header.ItemCount]!;
}

function moreRows(job: Scanned & Job): number {
  if (!hasMoreRows(job)) return 0;
  job.scanner.scanMore(job.body);
  return rowCount(job);
}

async function moreRowsInBackground(job: Placing): Promise<number> {
  if (!hasMoreRows(job)) return 0;
  await job.scanner.scanMoreInBackground(job.body);
  return rowCount(job);
}

/** How far one turn goes from row `start`: so many rows, or so many bytes of items, but at least one row. */
function endOfTurn(table: Uint32Array, start: number, rows: number): number {
  const last = Math.min(rows, start + rowsPerTurnMax);
  let end = start;
  for (let bytes = 0; end < last && bytes < bytesPerTurnMax; end++) {
    const row = Header.Words + end * Row.Words;
    const itemBytes = table[row + Row.ItemEnd]! - table[row + Row.ItemStart]!;
    bytes += isPlain({ table, row }) ? itemBytes : itemBytes * slowPathFactor;
  }
  return end;
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

function hashOf(request: OpenRequest): string {
  const hash = createHash("sha256");
  for (const piece of identifyingPieces(request)) hash.update(piece);
  return hash.digest("base64url");
}

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
