// One request on its way through the intake, in one object: what its scan found, whose it is, what
// it costs and, once it is taken, where its lines go. The stages fill it in, in the order of its
// fields. It holds the body, so what outlives the placing of its lines must not hold it.

import type { Buffer } from "node:buffer";
import type { Problem } from "../base/errors.ts";
import type {
  Exchange,
  FrameSink,
  Lane,
  MeteredProject,
  ProjectLookup,
  Publisher,
  RequestCost,
} from "../base/types.ts";
import type { RecordWriter } from "../events/record.ts";
import type { RecordFrame } from "../events/record-frame.ts";
import type { RequestFacts } from "../events/verdict.ts";
import { type BackgroundScanner, Header } from "../scan/table.ts";
import { withoutMark } from "./byte-order-mark.ts";
import type { Slips } from "./details/slips.ts";
import type { Envelope } from "./envelope.ts";
import { type PendingReports, PendingRequest } from "./pending-request.ts";
import type { RepairedBody } from "./repaired-body.ts";
import type { SentAt } from "./sent-at.ts";
import type { Tally } from "./tally.ts";

/** The places where requests of the newer protocol (v1) differ from all others. */
export interface Protocol {
  /** Each item is written anew, be it in plain form or not. */
  readonly writesAnew: boolean;
  /** An event without a timestamp gets a warning on either lane. */
  readonly needsTimestamp: boolean;
  /**
   * A client that retries sends the whole body again; else it sends those events that were not
   * stored.
   */
  readonly retriesWhole: boolean;
  /** Members for the properties of each event; undefined where nothing is put there. */
  readonly additions: string | undefined;
  /** Whose the request is and on which lane it goes, or what is wrong with it as a whole. */
  readEnvelope(work: Work, projects: ProjectLookup): Envelope | Problem;
  /** What looks like the slip behind a problem of the envelope; "" where nothing does. */
  hintOf(problem: Problem, work: Work, slips: Slips): string;
  /** What an event has for which the whole request is refused. The table must hold all events. */
  readEvents(work: Work): Problem | undefined;
  /** The same for a body of any length. Undefined: there is nothing to read. */
  readEventsInTurns(work: Work): Promise<Problem | undefined> | undefined;
  readSentAt(work: Work): SentAt;
  createTally(): Tally;
  /** `bodyId` names a body whose lines go to frames of their own. */
  createFrames(work: Work, publisher: Publisher, bodyId: string | undefined): RequestFrames;
}

/** Where the lines of one request go. */
export interface RequestFrames {
  /**
   * A sink with room for a line of `bytes`, for the item at `index`, which came with a valid uuid
   * of its own or did not. Valid until the next call.
   */
  sinkFor(bytes: number, index: number, hasUuid: boolean): FrameSink;
  /**
   * Before other requests get a turn: a shared frame that has their lines too may leave in it, so
   * what is in it is handed over.
   */
  endTurn(): void;
  /** Hands over the last lines. */
  finish(): void;
  /** Takes back the lines that are not handed over yet, of a request that came to nothing. */
  abandon(): void;
}

/** What a request is taken with. */
export interface WorkParts extends PendingReports {
  readonly publisher: Publisher;
  readonly records: RecordWriter;
}

export class Work implements RequestFacts {
  readonly exchange: Exchange;
  readonly protocol: Protocol;
  readonly receivedAtMs: number;
  readonly isEngage: boolean;
  /** Without a byte order mark, and in UTF-8 once it is repaired. */
  body: Buffer;
  /** So many bytes stood before the body in what was sent. */
  readonly markBytes: number;
  /**
   * Where the body holds U+FFFD for bytes that were malformed, ascending; undefined for a body that
   * came as UTF-8.
   */
  malformed: Uint32Array | undefined = undefined;
  /** Holds the table of the body, once it is scanned. */
  readonly scanner: BackgroundScanner;

  // These are known when the request is opened.
  project!: MeteredProject;
  lane!: Lane;
  cost!: RequestCost;
  additions: string | undefined = undefined;

  // These are known when it is taken.
  needsTimestamp = false;
  skewMs = 0;
  /** The request says when it was sent, and it cannot be read. */
  hasInvalidSentAt = false;
  tally!: Tally;
  pending!: PendingRequest;
  /** The largest record that the store takes. */
  recordBytesMax = 0;
  record!: RecordFrame;
  frames!: RequestFrames;

  constructor(
    exchange: Exchange,
    protocol: Protocol,
    { bytes, scanner }: { bytes: Buffer; scanner: BackgroundScanner },
  ) {
    this.exchange = exchange;
    this.protocol = protocol;
    this.receivedAtMs = exchange.receivedAtMs;
    this.isEngage = exchange.isEngage;
    this.body = withoutMark(bytes);
    this.markBytes = bytes.length - this.body.length;
    this.scanner = scanner;
  }

  get table(): Uint32Array {
    return this.scanner.table;
  }

  /** Rows that the table has now; a longer batch comes in several tables. */
  get rowCount(): number {
    return this.table[Header.RowCount]!;
  }

  /** Reads the next rows of a batch that is longer than the table; 0 for none. */
  async nextRows(): Promise<number> {
    const { table } = this;
    if (table[Header.FirstItem]! + table[Header.RowCount]! >= table[Header.ItemCount]!) return 0;
    await this.scanner.scanMoreInBackground(this.body);
    return this.rowCount;
  }

  /** Goes on with the repaired body. The scanner holds its table by now. */
  repair({ body, malformed }: RepairedBody): void {
    this.body = body;
    this.malformed = malformed;
  }

  open({ project, lane }: Envelope): void {
    this.project = project;
    this.lane = lane;
    this.additions = this.protocol.additions;
    this.cost = {
      events: this.table[Header.ItemCount]!,
      bytes: this.body.length,
      eventsTaken: 0,
      bytesTaken: 0,
    };
  }

  /** Makes what its items are judged by, where its lines go, and who waits for their frames. */
  begin(parts: WorkParts, bodyId: string | undefined): void {
    const { protocol, lane, project, receivedAtMs } = this;
    const { publisher } = parts;
    const sentAt = protocol.readSentAt(this);
    this.needsTimestamp = lane === "historical" || protocol.needsTimestamp;
    this.skewMs = Number.isNaN(sentAt.ms) ? 0 : sentAt.ms - receivedAtMs;
    this.hasInvalidSentAt = sentAt.isInvalid;
    this.tally = protocol.createTally();
    this.pending = new PendingRequest(this, parts);
    this.recordBytesMax = publisher.recordBytesMaxOf(lane, project.id);
    this.record = parts.records.begin({
      projectId: project.id,
      lane,
      receivedAtMs,
      sentAtMs: sentAt.ms,
      clientAddress: this.exchange.clientAddress,
    });
    this.frames = protocol.createFrames(this, publisher, bodyId);
  }
}
