// Applies frames in batches, and commits the results together with the positions. The writer runs
// until it is closed, or until it detects another writer.

import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import { TooSlowError } from "../../../platform/base/store-error.ts";
import type { EventStreams, ReadPosition } from "../../stream/event-streams.ts";
import type { ReaderWords } from "../../stream/resume.ts";
import { BatchLimit, Session } from "../../stream/session.ts";
import type { PeopleOptions } from "../people/people.ts";
import { SpikeLog } from "../spikes/announcement.ts";
import { type EffectsStore, FencedError } from "../store/port.ts";
import {
  Applier,
  batchEventsDefault,
  type Counts,
  effectsWords,
  type Memory,
  stepBytesMax,
  stepEventsMax,
} from "./applier.ts";
import { OutboxPublisher } from "./outbox-publisher.ts";
import { Reached, type StreamProgress, streamProgress } from "./progress.ts";
import {
  Batch,
  type Changes,
  CommitChain,
  type CommitCounts,
  CommitPace,
  knownMore,
  OpenTransaction,
  outsideOf,
} from "./transaction.ts";

export interface EffectsWriterOptions {
  readonly connection: NatsConnection;
  readonly prefix: string;
  readonly store: EffectsStore;
  readonly log: Log;
  readonly metrics?: CommitCounts;
  readonly bytesMax?: number;
  readonly eventsPerSecondMax?: number;
  readonly batchEventsMax?: number;
  /** If the changed rows have more bytes, they are written before the end of the batch. */
  readonly changedBytesMax?: number;
  readonly acceptExpired?: boolean;
  /** Default: `effectsWords`. */
  readonly words?: ReaderWords;
  readonly duplicatesBytesMax?: number;
  readonly people?: PeopleOptions;
  /** Minimum interval between commits in ms, unless a client waits. Default: 50. */
  readonly commitEveryMs?: number;
}

interface WriterStatus {
  readonly reasons: readonly string[];
  readonly streams: readonly StreamProgress[];
}

/**
 * Maximum bytes of frames that wait to be applied. The limit is low, because frames that wait
 * longer are moved to V8's old generation. Every 64 MiB of them trigger a full garbage collection.
 */
const framesBytesDefault = 8 * 1_048_576;
const pauseMsMax = 2_000;
const sayAgainMs = 30_000;
const incidentsKnown = 1_000;
const putBack = "the database was restored to a different state";

export class EffectsWriter {
  readonly #options: EffectsWriterOptions;
  readonly #applier: Applier;
  readonly #outbox: OutboxPublisher;
  readonly #spikeLog: SpikeLog;
  readonly #reached = new Reached(() => this.#pace.hurry());
  readonly #chain: CommitChain;
  readonly #session: Session;
  readonly #warning: SparseWarning;
  #nextBatchMonotonicMs = 0;
  readonly #limit: BatchLimit;
  readonly #pace: CommitPace;
  #running: Promise<void> | undefined;
  #fault: string | undefined = "it is starting";
  #slowness: string | undefined;
  #batchInFlight = new Batch();
  #batchAtHand = new Batch();
  readonly #transaction = new OpenTransaction();
  #fencedAt = -1;

  constructor(options: EffectsWriterOptions) {
    this.#options = options;
    const { connection, prefix, store, log, duplicatesBytesMax, changedBytesMax, people } = options;
    const { bytesMax = framesBytesDefault, acceptExpired = false, words = effectsWords } = options;
    const { batchEventsMax = batchEventsDefault } = options;
    this.#limit = new BatchLimit(batchEventsMax);
    this.#session = new Session({
      connection,
      prefix,
      bytesMax,
      acceptExpired,
      log,
      pauseMsMax,
      reader: "effects",
      words,
      limit: this.#limit,
      target: {
        open: () => this.#open(),
        opened: () => {
          this.#fault = undefined;
        },
        batch: (streams) => this.#batch(streams),
        failed: (error) => this.#failed(error),
      },
    });
    this.#pace = new CommitPace(options.commitEveryMs);
    this.#applier = new Applier({
      store,
      prefix,
      duplicatesBytesMax,
      changedBytesMax,
      people,
      log,
      writePart: async (changes) => {
        await this.#session.room(1);
        this.#batchAtHand.hasParts = true;
        await this.#write(await changes(), "part");
      },
    });
    this.#chain = new CommitChain(store, options.metrics);
    const outbox = outsideOf(this.#transaction, store);
    this.#outbox = new OutboxPublisher({ connection, store: outbox, log });
    this.#spikeLog = new SpikeLog(log);
    this.#warning = new SparseWarning(log, sayAgainMs);
  }

  get counts(): Readonly<Counts> {
    return this.#applier.counts;
  }

  get commits(): number {
    return this.#session.commits;
  }

  get memory(): Memory & { readonly framesBytes: number } {
    return { ...this.#applier.memory, framesBytes: this.#session.framesBytes };
  }

  start(): void {
    this.#running = this.#session.run().finally(() => this.#transaction.end());
  }

  /** Waits until the writer has ended. Rejects with a FencedError if another writer is active. */
  async ended(): Promise<void> {
    await this.#running;
  }

  /** Commits the current batches and ends. Does not wait for a store that does not respond. */
  async close(): Promise<void> {
    await this.#session.close({ alongside: this.#outbox.close() });
    this.#reached.close();
  }

  status(nowMs: number): WriterStatus {
    const batches = [this.#batchInFlight, this.#batchAtHand];
    const work = { reached: this.#reached, batches, nowMs };
    return {
      reasons: this.#session.reasons(this.#fault ?? this.#slowness),
      streams: this.#session.readers.map((reader) => streamProgress(reader, work)),
    };
  }

  /**
   * Waits until the positions are committed. Rejects when the writer ends. If the signal aborts,
   * rejects with its reason.
   */
  async positionsReached(wanted: ReadonlyMap<string, number>, signal?: AbortSignal): Promise<void> {
    const each = [...wanted].map(([stream, to]) => this.#reached.until(stream, to, signal));
    await Promise.all(each);
  }

  async #failed(error: Error): Promise<undefined> {
    this.#fault = error.message;
    if (error instanceof FencedError) await this.#outlast(error);
    else
      this.#warning.warn({ reason: this.#fault }, "effects failed to apply events: starting again");
  }

  /**
   * Prepares a new start from the database if this writer still holds the lock. Rejects if another
   * writer may hold the lock. Also rejects if another program commits repeatedly without the lock.
   */
  async #outlast(error: FencedError): Promise<void> {
    const { store, log } = this.#options;
    let [holdsLock, isErasure] = [true, false];
    try {
      holdsLock = await store.holdsLock();
      isErasure = holdsLock && (await store.lastCommit()) < 0;
    } catch (fault) {
      this.#warning.warn({ reason: (fault as Error).message }, "effects failed to apply events");
    }
    const isRepeated = !isErasure && this.#fencedAt === this.commits;
    this.#fencedAt = this.commits;
    if (holdsLock && !isRepeated) {
      const what = isErasure ? "people were erased from the database" : putBack;
      const words = `effects restarting from the state of the database: ${what}`;
      log[isErasure ? "info" : "warn"]({ reason: error.message }, words);
      return;
    }
    this.#fault = "effects stopped: another writer is active on this database";
    log.error({ reason: error.message, holdsLock }, this.#fault);
    throw error;
  }

  async #open(): Promise<ReadonlyMap<string, ReadPosition>> {
    const { store } = this.#options;
    this.#batchInFlight = new Batch();
    this.#batchAtHand = new Batch();
    this.#chain.begin(await store.lastCommit());
    this.#transaction.end();
    const positions = await store.positions();
    const incidents = await store.reader.incidents(incidentsKnown);
    const largeProperties = await store.largeProperties();
    this.#applier.begin({ positions, incidents, largeProperties });
    this.#reached.begin(positions);
    return new Map(
      positions.map((position) => {
        const rememberFrom = this.#applier.rememberFrom(position);
        return [position.stream, { ...position, rememberFrom }];
      }),
    );
  }

  async #batch(streams: EventStreams): Promise<boolean> {
    const pauseMs = this.#nextBatchMonotonicMs - performance.now();
    if (pauseMs > 0) await pauseUntilAborted(pauseMs, this.#session.signal);
    await this.#readyOrCommitted(streams);
    await streams.ready();
    const beganMonotonicMs = performance.now();
    const batch = new Batch();
    this.#batchAtHand = batch;
    while (this.#hasRoom(batch) && (await this.#hasMore(streams, batch))) {
      const items = streams.take(Math.min(stepEventsMax, this.#limit.events), stepBytesMax);
      batch.add(items);
      await batch.timed(() => this.#applier.apply(items));
    }
    const { eventsPerSecondMax = Number.POSITIVE_INFINITY } = this.#options;
    this.#nextBatchMonotonicMs = beganMonotonicMs + (batch.events / eventsPerSecondMax) * 1_000;
    await this.#session.room(1);
    if (this.#applier.hasChanges)
      this.#session.write(this.#commit(await this.#applier.changes(), batch));
    return !this.#applier.isStreamReplaced;
  }

  /**
   * Returns true if the batch should get more items. It waits for more items while the previous
   * commit is being written or the backlog is large, because a row that changes twice in a batch is
   * written once.
   */
  async #hasMore(streams: EventStreams, batch: Batch): Promise<boolean> {
    await this.#readyOrCommitted(streams);
    if (streams.isReady) return true;
    if (streams.isFarBehind && batch.mayWait) await knownMore(streams.ready());
    else if (this.#reached.waiting === 0) await this.#pace.rest(streams.ready());
    return streams.isReady;
  }

  async #readyOrCommitted(streams: EventStreams): Promise<void> {
    const { signal } = this.#session;
    while (!streams.isReady && this.#session.writes > 0 && !signal.aborted)
      await Promise.race([streams.ready(), this.#session.room(1)]);
  }

  #hasRoom(batch: Batch): boolean {
    return !this.#applier.isFull && batch.hasRoom(this.#limit.events, this.#session.writes > 0);
  }

  async #commit(changes: Changes, batch: Batch): Promise<void> {
    this.#pace.begun();
    this.#batchInFlight = batch;
    await this.#write(changes, batch.events);
    this.#slowness = undefined;
    this.#applier.committed();
    this.#reached.reach(changes.positions);
    batch.committed();
    this.#spikeLog.committed(changes.outbox);
    if (changes.outbox.length > 0) this.#outbox.ask();
  }

  async #write(changes: Changes, events: number | "part"): Promise<void> {
    const isPart = events === "part";
    const tried = isPart ? this.#batchAtHand.events + stepEventsMax : events;
    this.#transaction.begin();
    try {
      await this.#limit.within(tried, "transactions", () => this.#chain.write(changes, isPart));
    } catch (error) {
      if (error instanceof TooSlowError) this.#slowness = error.message;
      throw error;
    }
    if (!isPart) this.#transaction.end();
  }
}
