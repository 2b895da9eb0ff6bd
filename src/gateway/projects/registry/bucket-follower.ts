// Follows the bucket of the registry by polling. It reads the whole bucket once, and then each new
// entry. If the bucket has lost entries, was recreated or may have been restored, the whole bucket
// is read again.

import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, restartLoop, SparseWarning } from "../../../platform/base/retry.ts";
import { isConnected } from "../../../platform/nats/api.ts";
import { violationIn } from "../../../platform/nats/sign-in.ts";
import { projectsWithVersions } from "../rules/stored-versions.ts";
import {
  type BucketEntry,
  type BucketPlace,
  type BucketReader,
  type BucketState,
  bucketName,
  bucketReader,
  openBucket,
  openExistingBucket,
  parseProject,
  raiseReplicas,
  readWhole,
} from "./bucket.ts";
import type { EntryNews, Reading } from "./known-projects.ts";
import { lossMark, lossOfAll, markLoss, nothingStored, type StoredEvents } from "./loss-mark.ts";

interface BucketFollowerOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Log;
  readonly pollMs: number;
  readonly storedEvents: () => Promise<StoredEvents>;
  readonly knowsProjects: () => boolean;
  readonly onMissing: () => void;
  readonly onRead: (reading: Reading) => void;
  readonly onFailure: (error: unknown) => void;
  readonly onChange: (key: string, news: EntryNews) => void;
}

interface Progress {
  readonly created: string;
  sequence: number;
  readonly keys: Set<string>;
}

const pauseMsMin = 100;
const pauseMsMax = 2_000;
const warningEveryMs = 5_000;
const unansweredInARowMax = 3;
const unansweredMsMax = 250;

export class BucketFollower {
  readonly #options: BucketFollowerOptions;
  readonly #closing = new AbortController();
  #isUpToDate = false;
  #askedMonotonicMs: number | undefined;
  #mustReadAgain = false;
  #isReported = false;
  #isCompared = false;

  constructor(options: BucketFollowerOptions) {
    this.#options = options;
    void this.#noteDisconnects();
  }

  get isConfirmed(): boolean {
    const askedMs = this.#askedMonotonicMs;
    const isLate = askedMs !== undefined && performance.now() - askedMs > unansweredMsMax;
    return this.#isUpToDate && !isLate;
  }

  async follow(): Promise<void> {
    const { connection, log } = this.#options;
    const warning = new SparseWarning(log, warningEveryMs);
    const readAndPoll = async (): Promise<void> => {
      if (connection.isClosed()) this.#closing.abort();
      else await this.#readAndPoll();
    };
    await restartLoop(readAndPoll, {
      signal: this.#closing.signal,
      pauseMsMin,
      pauseMsMax,
      steadyMs: pauseMsMax,
      ended: (_pauseMs, error) => {
        if (error === undefined) return;
        if (!this.#isReported) this.#options.onFailure(error);
        if (this.#closing.signal.aborted) return;
        const reason = (error as Error).message;
        if (isConnected(connection))
          warning.warn({ reason }, "project registry cannot be read: the gateway retries");
      },
    });
  }

  close(): void {
    this.#closing.abort();
  }

  async #readAndPoll(): Promise<void> {
    const { connection, prefix, replicas, log } = this.#options;
    this.#mustReadAgain = false;
    const reader = await bucketReader(connection, bucketName(prefix));
    const opened = await this.#open(reader);
    if (opened === undefined) {
      this.#isReported = true;
      this.#options.onMissing();
      return;
    }
    const { bucket, state } = opened;
    const isNew = !this.#isCompared || !this.#options.knowsProjects();
    // The stored events must be queried before the bucket is read. Then every project that has
    // stored events by now is in the bucket.
    const stored = isNew ? await this.#options.storedEvents() : nothingStored;
    const loss = isNew ? lossOfAll(state, stored) : undefined;
    if (loss !== undefined) await this.#markLoss(stored);
    await raiseReplicas(connection, { config: state.config, replicas, log });
    const { created } = state;
    // Also queried before: a version is written before the entry that names it.
    const withRules = await this.#projectsWithRules();
    const { entries, lastSequence } = await readWhole(bucket, reader);
    if (this.#closing.signal.aborted) return;
    const progress = { created, sequence: lastSequence, keys: new Set(entries.keys()) };
    const news = new Map([...entries].map(([key, entry]) => [key, this.#newsOf(entry)]));
    this.#isCompared = true;
    this.#isReported = true;
    this.#isUpToDate = !this.#mustReadAgain;
    const expected = stored.projectIds;
    this.#options.onRead({ created, lastSequence, entries: news, expected, loss, withRules });
    try {
      await this.#poll(reader, progress);
    } finally {
      this.#isUpToDate = false;
    }
  }

  async #poll(reader: BucketReader, progress: Progress): Promise<void> {
    const { connection, pollMs } = this.#options;
    const { signal } = this.#closing;
    for (let unanswered = 0; ; ) {
      await pauseUntilAborted(pollMs, signal, { ref: false });
      if (signal.aborted || connection.isClosed()) return;
      if (!isConnected(connection)) continue;
      if (this.#mustReadAgain) return;
      try {
        if (!(await this.#catchUp(reader, progress))) return;
        unanswered = 0;
      } catch (error) {
        this.#isUpToDate = false;
        if (++unanswered >= unansweredInARowMax) throw error;
      }
    }
  }

  /**
   * Returns false if the whole bucket must be read again. This is necessary if the bucket is
   * missing, was recreated, has a lower last sequence, or has fewer entries.
   */
  async #catchUp(reader: BucketReader, progress: Progress): Promise<boolean> {
    const { created, sequence, keys } = progress;
    const state = await this.#ask(reader);
    if (state?.created !== created || state.lastSequence < sequence) return false;
    if (state.entries < keys.size) return false;
    if (state.lastSequence > sequence) this.#isUpToDate = false;
    while (progress.sequence < state.lastSequence) {
      const entry = await reader.next(progress.sequence + 1);
      progress.sequence = entry?.revision ?? state.lastSequence;
      if (entry === undefined) continue;
      keys.add(entry.key);
      this.#options.onChange(entry.key, this.#newsOf(entry));
    }
    this.#isUpToDate = !this.#mustReadAgain;
    return true;
  }

  async #ask(reader: BucketReader): Promise<BucketState | undefined> {
    this.#askedMonotonicMs = performance.now();
    try {
      return await reader.state();
    } finally {
      this.#askedMonotonicMs = undefined;
    }
  }

  async #open(reader: BucketReader): Promise<{ bucket: KV; state: BucketState } | undefined> {
    const { connection, storedEvents } = this.#options;
    const isLost = async () => (await reader.state()) === undefined && (await storedEvents()).any;
    const isFirst = !this.#isReported && !(await isLost());
    const bucket = await (isFirst ? openBucket : openExistingBucket)(connection, this.#options);
    const state = bucket === undefined ? undefined : await reader.state();
    return bucket === undefined || state === undefined ? undefined : { bucket, state };
  }

  async #projectsWithRules(): Promise<ReadonlySet<string>> {
    const { connection, log } = this.#options;
    try {
      return await projectsWithVersions(connection, this.#options);
    } catch (error) {
      const violation = violationIn(error);
      if (violation === undefined) throw error;
      log.warn({ reason: violation.message }, "project registry: cannot read the rules bucket");
      return new Set();
    }
  }

  async #markLoss(stored: StoredEvents): Promise<void> {
    const { connection, log } = this.#options;
    try {
      await markLoss(connection, this.#options, async () => stored);
    } catch (error) {
      const reason = (error as Error).message;
      log.warn({ reason }, "project registry: cannot record that projects were lost");
    }
  }

  #newsOf({ key, operation, revision, value }: BucketEntry): EntryNews {
    if (operation !== "PUT") return { kind: "deleted", revision };
    if (key === lossMark) return { kind: "lost", revision };
    const parsed = parseProject(key, value);
    if (parsed.ok) return { kind: "project", revision, project: parsed.project };
    this.#options.log.warn(
      { entry: key, revision, fault: parsed.fault },
      "project registry: entry ignored",
    );
    return { kind: parsed.isUnowned ? "unowned" : "damaged", revision };
  }

  async #noteDisconnects(): Promise<void> {
    for await (const status of this.#options.connection.status()) {
      if (this.#closing.signal.aborted) return;
      if (status.type !== "disconnect") continue;
      this.#isUpToDate = false;
      this.#mustReadAgain = true;
    }
  }
}
