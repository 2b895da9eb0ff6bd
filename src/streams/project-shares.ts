// Limits how much of each stream one project may fill, so that a flood from one project costs that
// project alone. Each gateway counts what it has stored of each project (`stream-ledger.ts`) and
// shares that with the others through records in the usage bucket. A project may have its share of
// a stream, whatever others have. The end of a stream is a reserve: once the rest is filled, each
// project may add an equal part of the reserve to what it has.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { Problem } from "../base/errors.ts";
import { isProjectId } from "../base/forms.ts";
import type { Log } from "../base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../base/retry.ts";
import type { Lane, ProjectShares } from "../base/types.ts";
import { managerOf } from "../nats/api.ts";
import type { NatsLink } from "../nats/link.ts";
import {
  bucketStream,
  bucketSubjects,
  manyProjects,
  partitionOf,
  subjectOf,
} from "../nats/names.ts";
import type { StreamStates } from "../nats/readiness.ts";
import { type Holding, type Slices, StreamLedger } from "./stream-ledger.ts";

interface StoredSharesOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly streams: StreamStates;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    /** Per cent of a stream that a project without a share of its own may fill; 100: all. */
    readonly projectShare: number;
  };
  readonly streamShareOf: (projectId: string) => number | undefined;
  /** How many projects there are. A single one is not limited: there are no others to protect. */
  readonly projectsKnown: () => number;
  /** Names this process in the records. */
  readonly processId: string;
  readonly bucketName: string;
  readonly openBucket: () => Promise<KV>;
  /** The bytes that each project has stored lately, by the usage records. */
  readonly storedBytes: () => Promise<ReadonlyMap<string, number>>;
  readonly log: Pick<Log, "warn">;
  readonly monotonicMs: () => number;
}

const roundMs = 1_000;
const apiTimeoutMs = 2_000;
const warningEveryMs = 60_000;
const closeMsMax = 1_000;
/**
 * A project's record is written in the next round when it has added the first part of a stream
 * since, at once with the second, and at the end of the process with the third.
 */
const duePart = 1 / 4_096;
const urgentPart = 1 / 64;
const duePartAtEnd = 1 / 65_536;
const lookupsARound = 8;
const slicesMax = 16_384;

const shareFull: Problem = {
  code: "project_full",
  detail: "The project has filled its share of the store: older events have to leave it first",
  retryAfterMs: 30_000,
};
const reserveFull: Problem = {
  code: "store_full",
  detail:
    "The store is full except for a reserve, and the project has used its part of that: older events have to leave it first",
  retryAfterMs: 30_000,
};

export class StoredShares implements ProjectShares {
  readonly #options: StoredSharesOptions;
  readonly #ledgers: readonly StreamLedger[];
  /** The holdings whose records are out of date. */
  readonly #due = new Map<Holding, StreamLedger>();
  readonly #closing = new AbortController();
  readonly #warning: SparseWarning;
  #pause = new AbortController();
  #rounds: Promise<void> = Promise.resolve();
  #bucket: Promise<KV> | undefined;
  #bucketCreated = "";
  /** The bucket's sequence up to which records are read. */
  #sequence = 0;

  private constructor(options: StoredSharesOptions) {
    this.#options = options;
    const { streams, config, processId } = options;
    this.#ledgers = streams.all.map((state, index) => {
      const place = { partition: index % config.partitions, projectId: "" };
      return new StreamLedger(state, subjectOf(config.subjectPrefix, state.lane, place), processId);
    });
    this.#warning = new SparseWarning(options.log, warningEveryMs);
  }

  /** Reads what other processes have counted, and follows it until `close`. */
  static async open(options: StoredSharesOptions): Promise<StoredShares> {
    const shares = new StoredShares(options);
    await shares.#round();
    shares.#rounds = shares.#keepRounds();
    return shares;
  }

  /** How many projects are over their share; one that is over in two streams counts twice. */
  get projectsOver(): number {
    let count = 0;
    for (const ledger of this.#ledgers)
      for (const holding of ledger.holdings.values()) if (this.#isOver(ledger, holding)) count++;
    return count;
  }

  refusalOf(lane: Lane, projectId: string): Problem | undefined {
    const projects = this.#options.projectsKnown();
    if (projects <= 1) return undefined;
    const ledger = this.#ledgerOf(lane, projectId);
    const holding = ledger.holdings.get(projectId);
    const isOver = holding !== undefined && this.#isOver(ledger, holding);
    if (!isOver && !ledger.isOverReserve(holding, projects)) return undefined;
    // A frame that is sent has the stream asked for, and so has one that is not.
    const { state } = ledger;
    if (this.#options.monotonicMs() >= state.askMonotonicMs) state.ask();
    return isOver ? shareFull : reserveFull;
  }

  addUnderWay(lane: Lane, projectId: string, bytes: number): void {
    this.#ledgerOf(lane, projectId).addUnderWay(projectId, bytes);
  }

  stored(lane: Lane, projectId: string, bytes: number): void {
    const ledger = this.#ledgerOf(lane, projectId);
    const holding = ledger.add(projectId, bytes, this.#options.monotonicMs());
    if (holding.unwritten < ledger.bytesMax * duePart) return;
    this.#due.set(holding, ledger);
    if (holding.unwritten >= ledger.bytesMax * urgentPart) this.#pause.abort();
  }

  /** Writes the records that are out of date, for a second at most. */
  async close(): Promise<void> {
    this.#closing.abort();
    const written = new AbortController();
    await Promise.race([this.#writeRest(), pauseUntilAborted(closeMsMax, written.signal)]);
    written.abort();
  }

  #isOver(ledger: StreamLedger, holding: Holding): boolean {
    const { projectsKnown, streamShareOf, config } = this.#options;
    // No share is less than 1 %.
    if (projectsKnown() <= 1 || !ledger.isOver(holding, 1)) return false;
    const share = streamShareOf(holding.projectId) ?? config.projectShare;
    return share < 100 && ledger.isOver(holding, share);
  }

  #ledgerOf(lane: Lane, projectId: string): StreamLedger {
    const { partitions } = this.#options.config;
    const partition = partitions === 1 ? 0 : partitionOf(projectId, partitions);
    return this.#ledgers[lane === "live" ? partition : partitions + partition]!;
  }

  async #keepRounds(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      this.#pause = new AbortController();
      const either = AbortSignal.any([signal, this.#pause.signal]);
      await pauseUntilAborted(roundMs, either, { ref: false });
      if (!signal.aborted) await this.#round();
    }
  }

  /** Never rejects: the next round tries again what has failed. */
  async #round(): Promise<void> {
    const { link } = this.#options;
    const found = this.#ledgers.filter((ledger) => ledger.read());
    // Records of a stream that this process did not know yet were passed over.
    if (found.length > 0) this.#sequence = 0;
    if (!link.connected) return;
    try {
      const manager = await managerOf(link.connection, { timeoutMs: apiTimeoutMs });
      await this.#writeDue();
      await this.#readRecords(manager);
      for (const ledger of found) await this.#estimate(manager, ledger);
      await this.#findPurges(manager);
    } catch (error) {
      this.#bucket = undefined;
      const reason = (error as Error).message;
      this.#warning.warn({ reason }, "project shares are not exchanged with other gateways now");
    }
  }

  async #writeRest(): Promise<void> {
    await this.#rounds;
    for (const ledger of this.#ledgers)
      for (const holding of ledger.holdings.values())
        if (holding.unwritten >= ledger.bytesMax * duePartAtEnd) this.#due.set(holding, ledger);
    await this.#writeDue().catch(() => {});
  }

  async #writeDue(): Promise<void> {
    await Promise.all([...this.#due].map(([holding, ledger]) => this.#write(holding, ledger)));
  }

  async #write(holding: Holding, { state }: StreamLedger): Promise<void> {
    const { processId, openBucket } = this.#options;
    const { unwritten, projectId } = holding;
    const created = state.reading?.created;
    if (created === undefined) return;
    const record = JSON.stringify({ created, slices: holding.slices.get(processId) ?? [] });
    this.#bucket ??= openBucket();
    const bucket = await this.#bucket;
    await bucket.put(`${projectId}.${processId}.${state.name}`, record);
    holding.unwritten -= unwritten;
    this.#due.delete(holding);
  }

  /** Reads what other processes have written since the last round. */
  async #readRecords(manager: JetStreamManager): Promise<void> {
    const { bucketName, openBucket } = this.#options;
    this.#bucket ??= openBucket();
    await this.#bucket;
    const { created, state } = await manager.streams.info(bucketStream(bucketName));
    if (created !== this.#bucketCreated) this.#beginBucket(created);
    const subjects = bucketSubjects(bucketName);
    while (this.#sequence < state.last_seq) {
      const query = { seq: this.#sequence + 1, next_by_subj: `${subjects}*.*.*` };
      const message = await manager.streams.getMessage(bucketStream(bucketName), query);
      this.#sequence = message?.seq ?? state.last_seq;
      if (message === null) return;
      const key = message.subject.slice(subjects.length);
      const [projectId = "", processId = "", stream] = key.split(".");
      const ledger = this.#ledgers.find(({ state }) => state.name === stream);
      const streamCreated = ledger?.state.reading?.created;
      const isOwn = processId === this.#options.processId;
      if (isOwn || streamCreated === undefined || !isProjectId(projectId)) continue;
      const slices = slicesOf(message.data, streamCreated);
      if (slices !== undefined) ledger!.set(projectId, processId, slices);
    }
  }

  /** Another bucket than the one that was known has none of this process's records. */
  #beginBucket(created: string): void {
    this.#bucketCreated = created;
    this.#sequence = 0;
    for (const ledger of this.#ledgers)
      for (const holding of ledger.holdings.values())
        if (holding.slices.has(this.#options.processId)) this.#due.set(holding, ledger);
  }

  /**
   * Called once for each stream. If most of what it holds was never counted, as after an upgrade or
   * a loss of the bucket, the usage records tell about whose it is.
   */
  async #estimate(manager: JetStreamManager, ledger: StreamLedger): Promise<void> {
    const { name, lane, reading } = ledger.state;
    if (reading === undefined || ledger.uncounted <= reading.bytes / 2) return;
    const { state } = await manager.streams.info(name, { subjects_filter: ledger.subjectOf("*") });
    const { subjects = {} } = state;
    const isMixed = ledger.subjectOf(manyProjects) in subjects;
    const mayHave = (id: string): boolean =>
      ledger.subjectOf(id) in subjects || (isMixed && this.#ledgerOf(lane, id) === ledger);
    ledger.estimate([...(await this.#options.storedBytes())].filter(([id]) => mayHave(id)));
  }

  /**
   * A purge of one project's subject leaves the stream's first sequence as it is. So if messages
   * were deleted, the oldest message of each project over its share is looked up.
   */
  async #findPurges(manager: JetStreamManager): Promise<void> {
    let lookups = 0;
    for (const ledger of this.#ledgers) {
      const { name, reading } = ledger.state;
      if (!reading?.deleted) continue;
      for (const holding of ledger.holdings.values()) {
        if (holding.deletedSeen === reading.deleted || !this.#isOver(ledger, holding)) continue;
        if (++lookups > lookupsARound) return;
        const oldest = [holding.projectId, manyProjects].map(async (token) => {
          const query = { seq: reading.firstSequence, next_by_subj: ledger.subjectOf(token) };
          return (await manager.streams.getMessage(name, query))?.seq ?? Number.POSITIVE_INFINITY;
        });
        holding.deletedSeen = reading.deleted;
        ledger.forget(holding, Math.min(...(await Promise.all(oldest))));
      }
    }
  }
}

/** The slices of a record; undefined if it is not one, or of an earlier stream of that name. */
function slicesOf(value: Uint8Array, streamCreated: string): Slices | undefined {
  try {
    const { created, slices } = JSON.parse(new TextDecoder().decode(value));
    const isFit = Array.isArray(slices) && slices.length <= slicesMax && slices.length % 2 === 0;
    const areNumbers = isFit && slices.every((part) => Number.isSafeInteger(part) && part >= 0);
    return areNumbers && created === streamCreated ? slices : undefined;
  } catch {
    return undefined;
  }
}
