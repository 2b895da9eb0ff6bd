// The state of one request in the intake. Each stage sets the fields that later stages read. A Work
// keeps the request body in memory. So an object that is needed after the body is freed must not
// reference a Work.

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
import type { RequestOfRules } from "../../rules/apply.ts";
import type { CompiledRules } from "../../rules/compile.ts";
import type { Visitor } from "../../rules/cookieless.ts";
import type { Exchange } from "../http/port.ts";
import type { MeteredProject, ProjectLookup, RequestCost, Taken } from "../projects/project.ts";
import type { Publisher } from "../publish/port.ts";
import type { Envelope } from "./envelope.ts";
import type { Typos } from "./hints.ts";
import { type PendingReports, PendingRequest } from "./pending-request.ts";
import type { QuarantinedItem, QuarantineTaker } from "./quarantine-port.ts";
import type { RepairedBody } from "./repaired-body.ts";
import type { Tally } from "./tally.ts";

export interface NamedBody {
  readonly id: string;
  /** Stores the id of a failed attempt under the id of the body and the address of the sender. */
  readonly failed: RetryMemory<string>;
}

export interface SentAt {
  readonly ms: number;
  /** The JSON token of a time that cannot be read. It is empty if the time was in the query. */
  readonly unreadable: Buffer | undefined;
}

/** The differences between requests of the newer protocol (v1) and all other requests. */
export interface Protocol {
  readonly rewritesItems: boolean;
  readonly needsTimestamp: boolean;
  readonly retriesWhole: boolean;
  readonly additions: string | undefined;
  readEnvelope(work: Work, projects: ProjectLookup): Envelope | Problem;
  hintOf(problem: Problem, work: Work, typos: Typos): string;
  /** Reads all events of the request. The table must contain all of them. */
  readEvents(work: Work): Problem | undefined;
  /** Reads the events in several event loop iterations. Stops if `refusal` returns a problem. */
  readEventsInTurns(
    work: Work,
    refusal: () => Problem | undefined,
  ): Promise<Problem | undefined> | undefined;
  readSentAt(work: Work): SentAt;
  createTally(): Tally;
  createFrames(work: Work, publisher: Publisher, body: NamedBody | undefined): RequestFrames;
}

export interface RequestFrames {
  /** Returns the frame for the next line. It is valid only until the next call. */
  sinkFor(bytes: number, index: number, sentWith: SentWith): FrameSink;
  /** Submits the lines in a shared frame. Must be called before the event loop iteration ends. */
  endTurn(): void;
  finish(): void;
  abandon(): void;
}

export interface WorkParts extends PendingReports {
  readonly publisher: Publisher;
  readonly records: RecordWriter;
  readonly quarantine: QuarantineTaker;
}

export class Work implements RequestFacts, RequestOfRules {
  readonly exchange: Exchange;
  readonly protocol: Protocol;
  readonly receivedAtMs: number;
  readonly isEngage: boolean;
  /** The body without a byte order mark. If it was repaired, it is valid JSON in UTF-8. */
  body: Buffer;
  readonly markBytes: number;
  repaired: RepairedBody | undefined = undefined;
  scanner: BackgroundScanner;

  project!: MeteredProject;
  lane!: Lane;
  cost!: RequestCost;
  additions: string | undefined = undefined;
  /** The project's rules, if they read events. */
  rules: CompiledRules | undefined = undefined;
  /** The sender, if the rules have `cookieless`. */
  visitor: Visitor | undefined = undefined;
  /** Whether the project's rules have changed the client's address. */
  changesAddress = false;

  taken!: Taken;

  needsTimestamp = false;
  skewMs = 0;
  unreadableSentAt: Buffer | undefined = undefined;
  tally!: Tally;
  pending!: PendingRequest;
  recordBytesMax = 0;
  template!: RecordTemplate;
  frames!: RequestFrames;
  #parts!: WorkParts;
  #sentAtMs = Number.NaN;
  /** What the time since the first event went into, of a body that is processed in turns. */
  readonly times = { beganMs: 0, eventsMs: 0, storeMs: 0 };
  #addressless: RecordTemplate | undefined = undefined;
  /** All rules of the project. The request keeps them if newer ones are loaded. */
  #projectRules: CompiledRules | undefined = undefined;

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

  get isBot(): boolean {
    return this.exchange.isBot ?? false;
  }

  get table(): Uint32Array {
    return this.scanner.table;
  }

  get rowCount(): number {
    return this.table[Header.RowCount]!;
  }

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
    this.#projectRules = project.rules;
    this.rules = project.rules?.readsEvents === true ? project.rules : undefined;
    if (this.rules?.cookieless !== undefined) this.visitor = this.#visitorOf(this.exchange);
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
    this.#parts = parts;
    this.#sentAtMs = sentAt.ms;
    this.needsTimestamp = lane === "historical" || protocol.needsTimestamp;
    this.skewMs = Number.isNaN(sentAt.ms) ? 0 : sentAt.ms - receivedAtMs;
    this.unreadableSentAt = sentAt.unreadable;
    this.tally = protocol.createTally();
    this.pending = new PendingRequest(this, parts);
    this.recordBytesMax = publisher.recordBytesMaxOf(lane, project.id);
    this.template = this.#beginRecords(this.#storedAddress());
    this.frames = protocol.createFrames(this, publisher, body);
  }

  /** The template of records without the client's address. */
  get addresslessTemplate(): RecordTemplate {
    this.#addressless ??= this.#beginRecords("");
    return this.#addressless;
  }

  #beginRecords(clientAddress: string): RecordTemplate {
    return this.#parts.records.begin({
      projectId: this.project.id,
      lane: this.lane,
      receivedAtMs: this.receivedAtMs,
      sentAtMs: this.#sentAtMs,
      clientAddress,
      rulesVersion: this.#projectRules?.version,
    });
  }

  /**
   * Puts an item into quarantine. Must be called between `begin` and the end of the request. The
   * items are stored when the client receives the results. Does nothing in a replay, whose items
   * are still in quarantine.
   */
  quarantine(item: QuarantinedItem): void {
    if (this.exchange.isReplay) return;
    this.tally.quarantine ??= this.#parts.quarantine.open({
      projectId: this.project.id,
      lane: this.lane,
      receivedAtMs: this.receivedAtMs,
      skewMs: this.skewMs,
      additions: this.additions,
    });
    this.tally.quarantine.take(item);
  }

  #storedAddress(): string {
    const { clientAddress, isReplay } = this.exchange;
    // A replay comes from an operator, not from the client.
    if (isReplay) return "";
    const address = this.#projectRules?.address;
    if (address === undefined || clientAddress === "") return clientAddress;
    this.changesAddress = true;
    return address.storedFor(clientAddress, this.receivedAtMs);
  }

  /** A replay comes from an operator, not from the client. */
  #visitorOf({ senderAddress, userAgent, isReplay }: Exchange): Visitor {
    return {
      address: isReplay ? "" : senderAddress,
      userAgent: isReplay ? "" : (userAgent ?? ""),
      request: this,
      zoneLookups: { failed: 0 },
    };
  }

  handOver(): void {
    if (this.pending.failed) this.frames.abandon();
    else this.frames.finish();
  }

  abort(): void {
    const { frames, pending }: Partial<Pick<Work, "frames" | "pending">> = this;
    frames?.abandon();
    if (pending === undefined) this.taken.giveBack(0);
    else pending.abandon();
  }
}

/** Removes a byte order mark, because a parser may ignore it (RFC 8259, 8.1). */
export function withoutMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}
