// Limits how much of each stream one project may fill. The gateways add up the stored bytes of each
// project in a shared record in the usage bucket. The last part of each stream is a reserve. When
// the rest of the stream is full, each project may use an equal part of the reserve.

import type { JetStreamManager } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { Problem } from "../../platform/base/errors.ts";
import { isProjectId } from "../../platform/base/forms.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { Log } from "../../platform/base/log.ts";
import { atMost, pauseUntilAborted, SparseWarning } from "../../platform/base/retry.ts";
import { apiCodes, isApiError, managerOf } from "../../platform/nats/api.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import {
  type FrameScope,
  manyProjects,
  partitionOf,
  subjectOf,
} from "../../platform/nats/names.ts";
import type { StreamState, StreamStates } from "../../platform/nats/readiness.ts";
import { type Holding, type Slices, StreamLedger } from "./stream-ledger.ts";

export type ProjectShares = Pick<StoredShares, "refusalOf" | "addUnderWay" | "stored">;

interface StoredSharesOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly streams: StreamStates;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    readonly frameScope: FrameScope;
    readonly projectShare: number;
  };
  readonly streamShareOf: (projectId: string) => number | undefined;
  readonly projectsKnown: () => number;
  readonly processId: string;
  readonly openBucket: () => Promise<KV>;
  readonly log: Pick<Log, "warn">;
  readonly monotonicMs: () => number;
}

const roundMs = 1_000;
const apiTimeoutMs = 2_000;
const warningEveryMs = 60_000;
const waitMsMax = 1_000;
const recordSlicesMax = 16_384;

const shareFull: Problem = {
  code: "project_full",
  detail:
    "The project has filled its share of the store: older events must expire or be purged first",
  retryAfterMs: 30_000,
};
const reserveFull: Problem = {
  code: "store_full",
  detail:
    "The store is full except for its last tenth, and the project has used its part of that tenth: older events must expire or be purged first",
  retryAfterMs: 30_000,
};

export class StoredShares {
  readonly #options: StoredSharesOptions;
  readonly #exchanges: readonly Exchange[];
  readonly #closing = new AbortController();
  readonly #warning: SparseWarning;
  #rounds: Promise<void> = Promise.resolve();
  #bucket: Promise<KV> | undefined;

  private constructor(options: StoredSharesOptions) {
    this.#options = options;
    this.#exchanges = options.streams.all.map((state) => new Exchange(state));
    this.#warning = new SparseWarning(options.log, warningEveryMs);
  }

  /**
   * Reads the counts, but waits at most one second for them. Then it updates them until `close`.
   */
  static async open(options: StoredSharesOptions): Promise<StoredShares> {
    const shares = new StoredShares(options);
    const first = shares.#round();
    shares.#rounds = shares.#runRounds(first);
    await atMost(waitMsMax, first);
    return shares;
  }

  get projectsOver(): number {
    return this.#exchanges.reduce((count, { ledger }) => count + this.#over(ledger).length, 0);
  }

  refusalOf(lane: Lane, projectId: string): Problem | undefined {
    const projects = this.#options.projectsKnown();
    if (projects <= 1) return undefined;
    const ledger = this.#ledgerOf(lane, projectId);
    if (ledger.state.reading === undefined || ledger.state.refusal !== undefined) return undefined;
    const holding = ledger.holdings.get(projectId);
    const isOver = holding !== undefined && this.#isOver(ledger, holding);
    if (!isOver && !ledger.isOverReserve(holding, projects)) return undefined;
    const { state } = ledger;
    if (this.#options.monotonicMs() >= state.askMonotonicMs) state.ask();
    return isOver ? shareFull : reserveFull;
  }

  /**
   * Adds bytes that are not stored yet. When the outcome of a large request is known, the caller
   * passes a negative `bytes` to subtract them.
   */
  addUnderWay(lane: Lane, projectId: string, bytes: number): void {
    this.#ledgerOf(lane, projectId).addUnderWay(projectId, bytes);
  }

  stored(lane: Lane, projectId: string, bytes: number): void {
    this.#ledgerOf(lane, projectId).add(projectId, bytes);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const written = async (): Promise<void> => {
      await this.#rounds;
      await this.#exchangeAll();
      // The second attempt is necessary because another gateway may have written at the same time.
      await this.#exchangeAll();
    };
    await atMost(
      waitMsMax,
      written().catch(() => {}),
    );
  }

  #isOver(ledger: StreamLedger, holding: Holding): boolean {
    const { projectsKnown, streamShareOf, config } = this.#options;
    if (projectsKnown() <= 1 || !ledger.isOver(holding, 1)) return false;
    const share = streamShareOf(holding.projectId) ?? config.projectShare;
    return share < 100 && ledger.isOver(holding, share);
  }

  #over(ledger: StreamLedger): Holding[] {
    return [...ledger.holdings.values()].filter((holding) => this.#isOver(ledger, holding));
  }

  #ledgerOf(lane: Lane, projectId: string): StreamLedger {
    const { partitions } = this.#options.config;
    const partition = partitions === 1 ? 0 : partitionOf(projectId, partitions);
    return this.#exchanges[lane === "live" ? partition : partitions + partition]!.ledger;
  }

  async #runRounds(first: Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    await first;
    while (!signal.aborted) {
      await pauseUntilAborted(roundMs * (0.8 + Math.random() * 0.4), signal, { ref: false });
      if (!signal.aborted) await this.#round();
    }
  }

  async #round(): Promise<void> {
    const { link } = this.#options;
    for (const exchange of this.#exchanges) exchange.read();
    if (!link.connected) return;
    try {
      await this.#exchangeAll();
      const manager = await managerOf(link.connection, { timeoutMs: apiTimeoutMs });
      for (const exchange of this.#exchanges) await this.#findPurge(manager, exchange);
    } catch (error) {
      this.#bucket = undefined;
      const reason = (error as Error).message;
      this.#warning.warn({ reason }, "project shares: cannot exchange counts with other gateways");
    }
  }

  async #exchangeAll(): Promise<void> {
    this.#bucket ??= this.#options.openBucket();
    const bucket = await this.#bucket;
    const { processId } = this.#options;
    const runs = this.#exchanges.map((exchange) => exchange.run(bucket, processId));
    for (const run of await Promise.allSettled(runs))
      if (run.status === "rejected") throw run.reason;
  }

  /**
   * Purging one project does not change the first sequence of the stream. So each round looks up
   * the oldest message of one project.
   */
  async #findPurge(manager: JetStreamManager, exchange: Exchange): Promise<void> {
    const { ledger } = exchange;
    const { name, lane, reading } = ledger.state;
    if (!reading?.deleted || ledger.excess <= 0) return;
    const over = this.#over(ledger);
    const holding = over[exchange.lookups++ % over.length];
    if (holding === undefined) return;
    const isMixed = lane === "live" && this.#options.config.frameScope === "partition";
    const { subjectPrefix, partitions } = this.#options.config;
    const partition = partitionOf(holding.projectId, partitions);
    const tokens = [holding.projectId, ...(isMixed ? [manyProjects] : [])];
    const oldest = tokens.map(async (projectId) => {
      const subject = subjectOf(subjectPrefix, lane, { partition, projectId });
      const query = { seq: reading.firstSequence, next_by_subj: subject };
      return (await manager.streams.getMessage(name, query))?.seq ?? Number.POSITIVE_INFINITY;
    });
    ledger.forgetPurged(holding, Math.min(...(await Promise.all(oldest))));
  }
}

class Exchange {
  readonly ledger: StreamLedger;
  lookups = 0;
  #revision = -1;
  #write: string | undefined;
  #writes = 0;

  constructor(state: StreamState) {
    this.ledger = new StreamLedger(state);
  }

  read(): void {
    if (this.ledger.read()) this.#revision = -1;
  }

  async run(bucket: KV, processId: string): Promise<void> {
    const { ledger } = this;
    const { name, reading } = ledger.state;
    if (reading === undefined) return;
    const { created } = reading;
    const key = `streams.shares.${name}`;
    const entry = await bucket.get(key);
    const record = entry?.operation === "PUT" ? recordOf(entry.value, created) : undefined;
    if (this.#write !== undefined) ledger.sent(record?.write === this.#write);
    this.#write = undefined;
    if (record !== undefined && entry!.revision !== this.#revision) ledger.load(record.projects);
    this.#revision = entry?.revision ?? 0;
    const projects = ledger.send(record === undefined);
    if (projects === undefined) return;
    this.#write = `${processId}-${++this.#writes}`;
    const value = JSON.stringify({ created, write: this.#write, projects });
    try {
      this.#revision = await bucket.put(key, value, { previousSeq: this.#revision });
    } catch (error) {
      if (isApiError(error, apiCodes.streamWrongLastSequence)) return;
      throw error;
    }
    this.#write = undefined;
    ledger.sent(true);
  }
}

function recordOf(value: Uint8Array, streamCreated: string) {
  try {
    const { created, write, projects } = JSON.parse(new TextDecoder().decode(value));
    if (created !== streamCreated || !Array.isArray(projects)) return undefined;
    const isFit = projects.every(([id, slices]) => isProjectId(id) && areSlices(slices));
    return isFit ? { write, projects: new Map<string, Slices>(projects) } : undefined;
  } catch {
    return undefined;
  }
}

function areSlices(slices: unknown): slices is Slices {
  return (
    Array.isArray(slices) &&
    slices.length <= recordSlicesMax &&
    slices.length % 2 === 0 &&
    slices.every((part) => Number.isSafeInteger(part) && part >= 0)
  );
}
