// The story of one request, from its whole body to its answer: scan, key, rules, lines, frames, PubAcks.
// Holds the branching; the helpers compute. Runs to its end in one turn, so bodies, scan tables and the verdict are shared.
// Must not know HTTP, N-API or NATS.

import { Buffer } from "node:buffer";
import type { ItemErrorCode, Problem } from "../errors.ts";
import { type ItemView, judgeItem, Verdict } from "../events/guards.ts";
import { normaliseJson } from "../events/normalise.ts";
import { type RecordFrame, type RecordWriter, recordOverheadBytesMax } from "../events/record.ts";
import { EnvelopeFlag, Header, MoreShift, Row, type Scanner, ScanStatus } from "../scan/table.ts";
import type { Exchange, Intake, ProjectLookup, Publisher } from "../types.ts";
import { type Envelope, readEnvelope, scanProblem } from "./envelope.ts";
import { PendingRequest } from "./pending-request.ts";
import { OwnFrames, type RequestFrames, SharedFrames } from "./request-frames.ts";
import { type IntakeMetrics, Tally } from "./tally.ts";

export interface IntakeOptions {
  readonly scanner: Scanner;
  /** Reads what the slow path has normalised, while `scanner` still holds the table of the body. */
  readonly slowScanner: Scanner;
  readonly projects: ProjectLookup;
  readonly publisher: Publisher;
  readonly records: RecordWriter;
  readonly metrics: IntakeMetrics;
}

/** An ItemView that is pointed at one item after another. */
interface Cursor extends ItemView {
  body: Buffer;
  table: Uint32Array;
  row: number;
}

interface JobParts {
  readonly envelope: Envelope;
  readonly tally: Tally;
  readonly pending: PendingRequest;
}

/** What the items of one request have in common. */
interface Job {
  readonly historical: boolean;
  readonly tally: Tally;
  readonly record: RecordFrame;
  readonly frames: RequestFrames;
}

const nestedTooDeeply = "The event is not in plain form, and nested too deeply to be normalised";

export function createIntake(options: IntakeOptions): Intake {
  const { scanner, slowScanner, projects, publisher, records, metrics } = options;
  const verdict = new Verdict();
  const cursor: Cursor = { body: Buffer.alloc(0), table: scanner.table, row: 0 };
  const slowCursor: Cursor = { body: Buffer.alloc(0), table: slowScanner.table, row: Header.Words };

  function intake(exchange: Exchange, body: Buffer): void {
    const problem = takeBody(exchange, body);
    if (problem !== undefined) exchange.answerProblem(problem);
  }

  /** What stands against the request as a whole; otherwise it is answered when its frames are settled. */
  function takeBody(exchange: Exchange, sentBody: Buffer): Problem | undefined {
    const refusal = publisher.refusal();
    if (refusal !== undefined) return { code: refusal, detail: "Events cannot be stored now" };
    const body = scanBody(sentBody);
    if (!Buffer.isBuffer(body)) return body;
    const envelope = readEnvelope(body, scanner.table, projects);
    if ("code" in envelope) return envelope;
    const { lane } = envelope;
    const tally = new Tally();
    const pending = new PendingRequest(exchange, tally, lane, metrics);
    const job = startJob(exchange, body, { envelope, tally, pending });
    takeItems(body, job);
    job.frames.finish();
    tally.countJudged(lane, metrics);
    if (tally.errorsTotal > 0 && tally.errorsTotal === scanner.table[Header.ItemCount]) return problemOfItems(tally);
    pending.release();
    return undefined;
  }

  /** Scans; answers the body the table now speaks of: the one sent, or its normalised form. */
  function scanBody(body: Buffer): Buffer | Problem {
    const status = scanner.scan(body);
    if (status !== ScanStatus.Ok) return scanProblem(status, scanner.table);
    if ((scanner.table[Header.Flags]! & EnvelopeFlag.EscapedKey) === 0) return body;
    try {
      const plain = Buffer.from(normaliseJson(body.toString("utf8")));
      scanner.scan(plain);
      return plain;
    } catch (error) {
      if (error instanceof RangeError) return { code: "invalid_payload", detail: nestedTooDeeply };
      throw error;
    }
  }

  function startJob(exchange: Exchange, body: Buffer, { envelope, tally, pending }: JobParts): Job {
    const { lane, project } = envelope;
    const { receivedAtMs, clientAddress, deadlineMs } = exchange;
    const request = { publisher, lane, project, pending, deadlineMs };
    // Decided by the body alone, so that a client's retry of it is placed the same way.
    const linesBytesMax = body.length + scanner.table[Header.ItemCount]! * recordOverheadBytesMax;
    const large = linesBytesMax > publisher.frameBytesMax;
    return {
      historical: lane === "historical",
      tally,
      record: records.begin({ projectId: project.id, lane, receivedAtMs, clientAddress }),
      frames: large ? new OwnFrames(request, body) : new SharedFrames(request),
    };
  }

  /** Judges every item, and writes the lines of the good ones. */
  function takeItems(body: Buffer, job: Job): void {
    const { table } = scanner;
    const itemCount = table[Header.ItemCount]!;
    cursor.body = body;
    for (let first = 0; first < itemCount; first += table[Header.RowCount]!) {
      if (first > 0) scanner.scanMore(body);
      for (let index = 0; index < table[Header.RowCount]!; index++) {
        cursor.row = Header.Words + index * Row.Words;
        takeItem(first + index, job);
      }
    }
  }

  function takeItem(index: number, job: Job): void {
    const { tally, record, frames } = job;
    const item = judge(job);
    if (verdict.drop !== undefined) {
      tally.drop(verdict.drop);
      return;
    }
    if (verdict.error !== undefined) {
      tally.fail(index, verdict.error, verdict.detail);
      return;
    }
    const bytes = records.measure(item, verdict, record);
    if (bytes > publisher.recordBytesMax) {
      const detail = `The record takes ${bytes} bytes, the store takes ${publisher.recordBytesMax}`;
      tally.fail(index, "event_too_large", detail);
      return;
    }
    records.write(item, verdict, record, frames.sinkFor(bytes, index));
    tally.store(index, verdict);
  }

  /** Fills the verdict; answers the view to write the record from: the item in the body, or its normalised form. */
  function judge({ historical, tally }: Job): ItemView {
    try {
      const item = isPlain(cursor) ? cursor : normalised(cursor, tally);
      judgeItem(item, historical, verdict);
      return item;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      verdict.drop = undefined;
      verdict.error = "invalid_properties";
      verdict.detail = nestedTooDeeply;
      return cursor;
    }
  }

  function normalised({ body, table, row }: ItemView, tally: Tally): ItemView {
    tally.slowPathItems++;
    const item = normaliseJson(body.toString("utf8", table[row + Row.ItemStart], table[row + Row.ItemEnd]));
    slowCursor.body = Buffer.from(`{"batch":[${item}]}`);
    slowScanner.scan(slowCursor.body);
    return slowCursor;
  }

  return intake;
}

function isPlain({ table, row }: ItemView): boolean {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags === 0;
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
