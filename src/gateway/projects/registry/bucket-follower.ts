// Follows the registry's bucket by a watch, and says what it reads: a whole reading first, then
// every change as it comes. A watch that is lost is made anew and read from the start. Must not
// judge what a reading is worth.

import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../../platform/base/log.ts";
import { restartLoop, SparseWarning } from "../../../platform/base/retry.ts";
import { isConnected } from "../../../platform/nats/api.ts";
import {
  type BucketPlace,
  bucketName,
  openBucket,
  openExistingBucket,
  parseProject,
  raiseConsumers,
  raiseReplicas,
} from "./bucket.ts";
import {
  type BucketEntry,
  type BucketReader,
  type BucketState,
  bucketReader,
} from "./bucket-state.ts";
import { type EntrySource, openEntrySource } from "./entry-source.ts";
import type { EntryNews, Reading } from "./known-projects.ts";
import { lossMark, markLoss } from "./loss-mark.ts";
import { lossOfAll, nothingStored, type StoredEvents } from "./stored-events.ts";
import { checkOften, type WatchProgress } from "./watch-check.ts";

interface BucketFollowerOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Log;
  /** How often the watch is compared with the bucket. */
  readonly checkIntervalMs: number;
  /** What the streams say of projects, asked where a bucket is read for the first time. */
  readonly storedEvents: () => Promise<StoredEvents>;
  /** Whether there are known projects, and none that this process may never have heard of. */
  readonly knowsProjects: () => boolean;
  /**
   * The bucket is missing although it was there before, or ought to be. It is not created again.
   */
  readonly onGone: () => void;
  readonly onRead: (reading: Reading) => void;
  /** Before the first reading: why the bucket cannot be read. */
  readonly onFailure: (error: unknown) => void;
  /** Takes one more entry of the bucket that was read last. */
  readonly onChange: (key: string, news: EntryNews) => void;
}

/** A watch that has been opened. */
interface OpenWatch {
  readonly source: EntrySource;
  readonly reader: BucketReader;
  readonly state: BucketState;
  readonly progress: WatchProgress;
  readonly loss: Reading["loss"];
  readonly expected: ReadonlySet<string>;
}

const pauseMsMin = 100;
const pauseMsMax = 2_000;
const warningEveryMs = 5_000;

export class BucketFollower {
  readonly #options: BucketFollowerOptions;
  readonly #closing = new AbortController();
  #following: WatchProgress | undefined;
  #endWatch: (() => void) | undefined;
  /** Whether `onRead` or `onGone` has been called yet. */
  #isTold = false;
  /**
   * Whether a reading has been compared with what the streams say. After that, the known projects
   * say more than the streams do.
   */
  #isCompared = false;

  constructor(options: BucketFollowerOptions) {
    this.#options = options;
    void this.#renewOnReconnect();
  }

  /** Whether a whole reading is followed, and the last question found the watch up to date. */
  get isConfirmed(): boolean {
    return this.#following?.isConfirmed === true;
  }

  /** Follows until it is closed, or the connection is. */
  async follow(): Promise<void> {
    const { connection, log } = this.#options;
    const warning = new SparseWarning(log, warningEveryMs);
    const watch = async (): Promise<void> => {
      if (connection.isClosed()) this.#closing.abort();
      else await this.#watchOnce();
    };
    await restartLoop(watch, {
      signal: this.#closing.signal,
      pauseMsMin,
      pauseMsMax,
      steadyMs: pauseMsMax,
      ended: (_pauseMs, error) => {
        if (error === undefined) return;
        if (!this.#isTold) this.#options.onFailure(error);
        if (this.#closing.signal.aborted) return;
        const reason = (error as Error).message;
        if (isConnected(connection))
          warning.warn({ reason }, "the project registry cannot be read, trying again");
      },
    });
  }

  close(): void {
    this.#closing.abort();
    this.#endWatch?.();
  }

  /** Follows one watch until it ends, is told to end, or turns out to have missed a change. */
  async #watchOnce(): Promise<void> {
    const { connection, prefix, checkIntervalMs: intervalMs } = this.#options;
    const reader = await bucketReader(connection, bucketName(prefix));
    const opened = await this.#open(reader);
    if (opened === undefined) {
      this.#isTold = true;
      this.#options.onGone();
      return;
    }
    const { bucket, state } = opened;
    const isNew = !this.#isCompared || !this.#options.knowsProjects();
    // Asked before the reading begins, so that the reading has every project with events stored by
    // now.
    const stored = isNew ? await this.#options.storedEvents() : nothingStored;
    const loss = isNew ? lossOfAll(state, stored) : undefined;
    if (loss !== undefined) await this.#markLoss(stored);
    await this.#raise(state);
    const source = await openEntrySource({ bucket, reader, intervalMs, log: this.#options.log });
    const progress = progressOf(state);
    if (this.#closing.signal.aborted) return source.stop();
    this.#endWatch = () => source.stop();
    const checks = checkOften(reader, { watch: source, progress, intervalMs });
    try {
      const expected = stored.projectIds;
      await this.#read({ source, reader, state, progress, loss, expected });
    } finally {
      this.#endWatch = undefined;
      this.#following = undefined;
      source.stop();
      checks.stop();
    }
    await checks.ended;
  }

  /**
   * Creates the bucket only at a first start: one that vanishes while this process runs is a loss.
   */
  async #open(reader: BucketReader): Promise<{ bucket: KV; state: BucketState } | undefined> {
    const { connection, storedEvents } = this.#options;
    const isLost = async () => (await reader.state()) === undefined && (await storedEvents()).any;
    const isFirst = !this.#isTold && !(await isLost());
    const bucket = await (isFirst ? openBucket : openExistingBucket)(connection, this.#options);
    const state = bucket === undefined ? undefined : await reader.state();
    return bucket === undefined || state === undefined ? undefined : { bucket, state };
  }

  /** Where it cannot be marked, the loss counts for this process alone. */
  async #markLoss(stored: StoredEvents): Promise<void> {
    const { connection, log } = this.#options;
    try {
      await markLoss(connection, this.#options, async () => stored);
    } catch (error) {
      const reason = (error as Error).message;
      log.warn({ reason }, "that the project registry has lost projects cannot be written to it");
    }
  }

  async #raise(state: BucketState): Promise<void> {
    const { connection, replicas, log } = this.#options;
    const config = await raiseConsumers(connection, { config: state.config, log });
    await raiseReplicas(connection, { config, replicas, log });
  }

  /**
   * Reads the watch to its end. The projects known before stay until the reading is whole. After
   * that every change counts as it comes.
   */
  async #read(watch: OpenWatch): Promise<void> {
    const { source, reader, state, progress } = watch;
    const entries = new Map<string, EntryNews>();
    if (state.entries === 0) this.#showWhole(watch, entries);
    for await (const entry of source) {
      progress.revision = Math.max(progress.revision, entry.revision);
      progress.keys.add(entry.key);
      progress.heardMonotonicMs = performance.now();
      if (progress.isRead) {
        this.#options.onChange(entry.key, this.#newsOf(entry));
        continue;
      }
      entries.set(entry.key, this.#newsOf(entry));
      if (entry.delta !== 0) continue;
      // The replica that serves the watch may itself be behind the leader.
      const isBehind =
        entry.revision < state.lastSequence &&
        (await reader.next(entry.revision + 1)) !== undefined;
      if (!isBehind) this.#showWhole(watch, entries);
    }
  }

  #showWhole(watch: OpenWatch, entries: Map<string, EntryNews>): void {
    const { state, progress, loss, expected } = watch;
    const { created } = state;
    progress.isRead = true;
    this.#following = progress;
    this.#isCompared = true;
    this.#isTold = true;
    const lastSequence = progress.revision;
    this.#options.onRead({ created, lastSequence, entries, expected, loss });
    entries.clear();
  }

  #newsOf({ key, operation, revision, value }: BucketEntry): EntryNews {
    if (operation !== "PUT") return { kind: "deleted", revision };
    if (key === lossMark) return { kind: "lost", revision };
    const parsed = parseProject(key, value);
    if (parsed.ok) return { kind: "project", revision, project: parsed.project };
    this.#options.log.warn({ entry: key, revision, fault: parsed.fault }, "registry entry ignored");
    return { kind: parsed.isNobodys ? "nobodys" : "damaged", revision };
  }

  /**
   * A server that stops forgets its watches: after a reconnect everything is read again at once.
   */
  async #renewOnReconnect(): Promise<void> {
    for await (const status of this.#options.connection.status()) {
      if (this.#closing.signal.aborted) return;
      if (status.type === "disconnect") this.#following = undefined;
      if (status.type === "reconnect") this.#endWatch?.();
    }
  }
}

function progressOf({ created, lastSequence }: BucketState): WatchProgress {
  return {
    created,
    revision: lastSequence,
    keys: new Set<string>(),
    isRead: false,
    heardMonotonicMs: performance.now(),
    isConfirmed: true,
  };
}
