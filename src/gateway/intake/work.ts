// The state of one request in the intake. Each stage sets the fields that the next stages read. A
// Work keeps the request body in memory. An object that is used after the last line of the body is
// written must therefore not reference a Work.

import type { Buffer } from "node:buffer";
import type { Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { RetryMemory } from "../../platform/base/retry-memory.ts";
import type { SentWith } from "../../platform/base/sent-with.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { RecordWriter } from "../../records/record.ts";
import type { RecordTemplate } from "../../records/record-template.ts";
import { type BackgroundScanner, Header } from "../../records/table.ts";
import type { RequestFacts } from "../../records/verdict.ts";
import type { CompiledRules } from "../../rules/compile.ts";
import type { Exchange } from "../http/port.ts";
import type { MeteredProject, ProjectLookup, RequestCost, Taken } from "../projects/project.ts";
import type { Publisher } from "../publish/port.ts";
import type { Envelope } from "./envelope.ts";
import type { Typos } from "./hints.ts";
import { type PendingReports, PendingRequest } from "./pending-request.ts";
import type { RepairedBody } from "./repaired-body.ts";
import type { RequestRules } from "./ruled-items.ts";
import type { Tally } from "./tally.ts";

export interface NamedBody {
  /** A hash of the project, the lane and the body. Unique in the stream. */
  readonly id: string;
  /** Maps a body id and the sender's address to the id of the failed attempt. */
  readonly failed: RetryMemory<string>;
}

export interface SentAt {
  /** Milliseconds since 1970; NaN if there is no readable time. */
  readonly ms: number;
  /** The JSON token of an unreadable time; empty if the time was in the query. */
  readonly unreadable: Buffer | undefined;
}

/** What differs between requests of the newer protocol (v1) and all other requests. */
export interface Protocol {
  readonly rewritesItems: boolean;
  /** Whether an event without a timestamp gets a warning on either lane. */
  readonly needsTimestamp: boolean;
  /** Whether a client retries the whole body, not only the events that were not stored. */
  readonly retriesWhole: boolean;
  readonly additions: string | undefined;
  readEnvelope(work: Work, projects: ProjectLookup): Envelope | Problem;
  /** Returns a hint about the mistake that caused a problem of the envelope, or "". */
  hintOf(problem: Problem, work: Work, typos: Typos): string;
  /** Returns the problem of an event that fails the request. The table must have all events. */
  readEvents(work: Work): Problem | undefined;
  /** Like `readEvents`, but for a body of any length. Stops if `refusal` returns a problem. */
  readEventsInTurns(
    work: Work,
    refusal: () => Problem | undefined,
  ): Promise<Problem | undefined> | undefined;
  readSentAt(work: Work): SentAt;
  createTally(): Tally;
  /** Returns the frames. `body` is the base of their message ids, if they need one. */
  createFrames(work: Work, publisher: Publisher, body: NamedBody | undefined): RequestFrames;
}

export interface RequestFrames {
  /** Returns the frame for a line of `bytes` bytes. The frame is valid until the next call. */
  sinkFor(bytes: number, index: number, sentWith: SentWith): FrameSink;
  /** Submits the lines in a shared frame. Must be called before the event loop iteration ends. */
  endTurn(): void;
  finish(): void;
  /** Removes the lines of a failed request that are not handed over yet. */
  abandon(): void;
}

export interface WorkParts extends PendingReports {
  readonly publisher: Publisher;
  readonly records: RecordWriter;
}

export class Work implements RequestFacts {
  readonly exchange: Exchange;
  readonly protocol: Protocol;
  readonly receivedAtMs: number;
  readonly isEngage: boolean;
  /** The body without a byte order mark. After a repair, the body is valid UTF-8 JSON. */
  body: Buffer;
  /** Length of the byte order mark that the client sent before the body. */
  readonly markBytes: number;
  repaired: RepairedBody | undefined = undefined;
  scanner: BackgroundScanner;

  // The project of the key. Set by `open`.
  project!: MeteredProject;
  lane!: Lane;
  cost!: RequestCost;
  additions: string | undefined = undefined;
  /** The project's rules for events; undefined if there are none. */
  rules: RequestRules | undefined = undefined;
  /** The version of the rules if they have changed the client's address, else 0. */
  addressRules = 0;

  /** The part of the project's quota that the request has taken. Set at admission. */
  taken!: Taken;

  // Whether events without a timestamp get a warning. Set by `begin`.
  needsTimestamp = false;
  skewMs = 0;
  /** The JSON token of an unreadable `sent_at`, or undefined. */
  unreadableSentAt: Buffer | undefined = undefined;
  tally!: Tally;
  pending!: PendingRequest;
  recordBytesMax = 0;
  template!: RecordTemplate;
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

  /** Number of rows in the table. A batch with more events is read in several tables. */
  get rowCount(): number {
    return this.table[Header.RowCount]!;
  }

  /** Scans the next rows of a batch that does not fit into one table. Returns their number. */
  async nextRows(): Promise<number> {
    const { table } = this;
    if (table[Header.FirstItem]! + table[Header.RowCount]! >= table[Header.ItemCount]!) return 0;
    await this.scanner.scanMoreInBackground(this.body);
    return this.rowCount;
  }

  open({ project, lane }: Envelope): void {
    this.project = project;
    this.lane = lane;
    this.additions = this.protocol.additions;
    this.rules = this.#requestRules(project.rules);
    this.cost = {
      events: this.table[Header.ItemCount]!,
      bytes: this.body.length,
      expansion: 0,
    };
  }

  begin(parts: WorkParts, body: NamedBody | undefined): void {
    const { protocol, lane, project, receivedAtMs } = this;
    const { publisher } = parts;
    const sentAt = protocol.readSentAt(this);
    this.needsTimestamp = lane === "historical" || protocol.needsTimestamp;
    this.skewMs = Number.isNaN(sentAt.ms) ? 0 : sentAt.ms - receivedAtMs;
    this.unreadableSentAt = sentAt.unreadable;
    this.tally = protocol.createTally();
    this.pending = new PendingRequest(this, parts);
    this.recordBytesMax = publisher.recordBytesMaxOf(lane, project.id);
    this.template = parts.records.begin({
      projectId: project.id,
      lane,
      receivedAtMs,
      sentAtMs: sentAt.ms,
      clientAddress: this.#storedAddress(),
    });
    this.frames = protocol.createFrames(this, publisher, body);
  }

  #storedAddress(): string {
    const { clientAddress } = this.exchange;
    const { address, version = 0 } = this.project.rules ?? {};
    if (address === undefined || clientAddress === "") return clientAddress;
    this.addressRules = version;
    return address.storedFor(clientAddress, this.receivedAtMs);
  }

  #requestRules(rules: CompiledRules | undefined): RequestRules | undefined {
    if (rules === undefined || !rules.readsEvents) return undefined;
    const { exchange, lane, isEngage, additions } = this;
    return {
      ...{ rules, lane, isEngage, rewritesItems: additions !== undefined },
      get isBot() {
        return exchange.isBot ?? false;
      },
    };
  }

  handOver(): void {
    if (this.pending.failed) this.frames.abandon();
    else this.frames.finish();
  }

  /** Ends a request after a bug, and gives its quota back. The intake's caller answers 503. */
  abort(): void {
    const { frames, pending }: Partial<Pick<Work, "frames" | "pending">> = this;
    frames?.abandon();
    if (pending === undefined) this.taken.giveBack(0);
    else pending.abandon();
  }
}

/** Returns the body without a byte order mark. RFC 8259 (8.1) lets a parser ignore the mark. */
export function withoutMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}
