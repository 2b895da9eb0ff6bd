// The projects in memory: follows the bucket by a watch, so that a change counts within a second and a lookup is one
// Map read, whatever NATS is doing. A watch that is lost is made anew and read from the start. Must not write to the bucket.

import { setTimeout as delay } from "node:timers/promises";
import type { StreamConfig } from "@nats-io/jetstream";
import type { KV, KvWatchEntry } from "@nats-io/kv";
import type { NatsConnection, QueuedIterator } from "@nats-io/nats-core";
import type { MeteredProject, ProjectLookup } from "../types.ts";
import { type BucketPlace, openBucket, parseProject, raiseReplicas } from "./bucket.ts";
import { Meter } from "./meter.ts";

export interface RegistryLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface RegistryOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: RegistryLog;
  /** Gives up waiting for the first reading. */
  readonly signal?: AbortSignal | undefined;
  /** How often the watch is compared with the bucket. Default 1 s. */
  readonly checkIntervalMs?: number;
}

export interface Registry extends ProjectLookup {
  readonly projectsKnown: number;
  /** What each project known now has sent to this process. */
  meters(): Iterable<KnownMeter>;
  close(): Promise<void>;
}

export interface KnownMeter {
  readonly projectId: string;
  readonly meter: Meter;
}

interface Entry {
  readonly project: MeteredProject;
  /** The project's own. */
  readonly meter: Meter;
  readonly revision: number;
}

const retryMsMin = 100;
const retryMsMax = 2_000;
const warningEveryMs = 5_000;
/** When a node of a cluster is lost, the watch that it served falls silent, and nobody says so: this is what notices. One small question. */
const checkIntervalMsDefault = 1_000;
/** The first reading of a watch counts as stuck after this long without an entry. */
const silentMsMax = 5_000;
/** How long a change may be on its way to the watch before the watch counts as lost. */
const laggingMsMax = 1_000;

/** Fulfilled when the projects have been read once, however long that takes. Rejects only when the signal aborts. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { connection, log, signal } = options;
  const closing = new AbortController();
  const firstReading = Promise.withResolvers<void>();
  let entries = new Map<string, Entry>();
  let projectOf = new Map<string, MeteredProject>();
  const clashesTold = new Set<string>();
  let ready = false;
  let endWatch: (() => void) | undefined;

  function show(next: Map<string, Entry>): void {
    entries = next;
    projectOf = keysOf(entries, (holder, other) => {
      if (clashesTold.has(`${holder} ${other}`)) return;
      clashesTold.add(`${holder} ${other}`);
      log.warn({ holder, other }, "two projects claim one key: the older entry has it");
    });
    ready = true;
    firstReading.resolve();
  }

  /** Follows one watch until it ends, is told to end, or turns out to have missed a change. */
  async function watchOnce(): Promise<void> {
    const bucket = await openBucket(connection, options);
    const { streamInfo } = await bucket.status();
    await raise(streamInfo.config);
    const isEmpty = streamInfo.state.messages === 0;
    const watch = await bucket.watch();
    const progress = { revision: streamInfo.state.last_seq, isRead: isEmpty, heardAtMs: performance.now() };
    if (closing.signal.aborted) return watch.stop();
    endWatch = () => watch.stop();
    const checks = checkOften(bucket, {
      watch,
      progress,
      intervalMs: options.checkIntervalMs ?? checkIntervalMsDefault,
    });
    // A reading is shown whole, so that projects deleted in the meantime go, and those known stay until it is there.
    const read = new Map<string, Entry>();
    if (isEmpty) show(read);
    try {
      for await (const entry of watch) {
        progress.revision = Math.max(progress.revision, entry.revision);
        progress.heardAtMs = performance.now();
        take(read, entry);
        if (!progress.isRead && entry.delta === 0) progress.isRead = true;
        if (progress.isRead) show(read);
      }
    } finally {
      endWatch = undefined;
      watch.stop();
      checks.stop();
    }
    await checks.failed;
  }

  /** Whoever added the first project created the bucket, perhaps with fewer replicas than the streams have. */
  async function raise(config: StreamConfig): Promise<void> {
    const { replicas } = options;
    if (config.num_replicas >= replicas) return;
    try {
      await raiseReplicas(connection, config, replicas);
      log.warn({ bucket: config.name, replicas }, "the project registry had fewer replicas than the settings: raised");
    } catch (error) {
      log.warn(
        { bucket: config.name, reason: (error as Error).message },
        "the project registry keeps its few replicas",
      );
    }
  }

  function take(into: Map<string, Entry>, { key, operation, revision, value }: KvWatchEntry): void {
    if (operation !== "PUT") {
      into.delete(key);
      return;
    }
    const parsed = parseProject(key, value);
    const known = into.get(key) ?? entries.get(key);
    if (parsed.ok) {
      const meter = known?.meter ?? new Meter(() => performance.now());
      meter.limit(parsed.project.limits);
      into.set(key, { project: { ...parsed.project, meter }, meter, revision });
      return;
    }
    log.warn({ entry: key, revision, fault: parsed.fault }, "registry entry ignored");
    // A project that was known keeps working as it was: a slip in the bucket must not turn its events away.
    if (known !== undefined) into.set(key, known);
  }

  async function follow(): Promise<void> {
    let waitMs = retryMsMin;
    let warnedAtMs = Number.NEGATIVE_INFINITY;
    while (!closing.signal.aborted && !connection.isClosed()) {
      const startedAtMs = performance.now();
      try {
        await watchOnce();
      } catch (error) {
        if (closing.signal.aborted) return;
        if (performance.now() - warnedAtMs >= warningEveryMs) {
          warnedAtMs = performance.now();
          log.warn({ reason: (error as Error).message }, "the project registry cannot be read, trying again");
        }
      }
      if (performance.now() - startedAtMs > retryMsMax) waitMs = retryMsMin;
      await delay(waitMs, undefined, { signal: closing.signal }).catch(() => {});
      waitMs = Math.min(waitMs * 2, retryMsMax);
    }
    firstReading.reject(new Error("read the project registry: the connection is closed"));
  }

  /** The server forgets a watch when it stops: after a reconnect everything is read again at once. */
  async function renewOnReconnect(): Promise<void> {
    for await (const status of connection.status()) {
      if (closing.signal.aborted) return;
      if (status.type === "reconnect") endWatch?.();
    }
  }

  // Rejected at a close that nobody waits for any more.
  firstReading.promise.catch(() => {});
  const following = follow();
  void renewOnReconnect();
  signal?.addEventListener("abort", () => firstReading.reject(signal.reason), { once: true });
  if (signal?.aborted) firstReading.reject(signal.reason);
  async function close(): Promise<void> {
    closing.abort();
    endWatch?.();
    await following;
  }
  try {
    await firstReading.promise;
  } catch (error) {
    void close();
    throw error;
  }
  log.info({ projects: entries.size }, "project registry read");
  return {
    get ready() {
      return ready;
    },
    get projectsKnown() {
      return entries.size;
    },
    // A Map goes by a seeded hash of the whole text: how long it takes says nothing of how much of a key was right.
    byKey: (key) => projectOf.get(key),
    *meters() {
      for (const { project, meter } of entries.values()) yield { projectId: project.id, meter };
    },
    close,
  };
}

/** Of two projects that claim one key, the one whose entry is older in the bucket has it, in every process alike. */
function keysOf(
  entries: ReadonlyMap<string, Entry>,
  onClash: (holder: string, other: string) => void,
): Map<string, MeteredProject> {
  const projectOf = new Map<string, MeteredProject>();
  for (const { project } of [...entries.values()].sort((left, right) => left.revision - right.revision)) {
    for (const key of project.keys) {
      const holder = projectOf.get(key);
      if (holder === undefined) projectOf.set(key, project);
      else if (holder !== project) onClash(holder.id, project.id);
    }
  }
  return projectOf;
}

interface WatchCheck {
  readonly watch: QueuedIterator<KvWatchEntry>;
  readonly progress: { revision: number; isRead: boolean; heardAtMs: number };
  readonly intervalMs: number;
}

/** Ends the watch when the bucket is ahead of it, or is another bucket, or the first reading got stuck. */
function checkOften(bucket: KV, { watch, progress, intervalMs }: WatchCheck): { stop(): void; failed: Promise<void> } {
  const stopping = new AbortController();
  const stop = { signal: stopping.signal, ref: false };

  async function isLost(): Promise<boolean> {
    const { streamInfo } = await bucket.status();
    const lastRevision = streamInfo.state.last_seq;
    if (lastRevision < progress.revision) return true;
    if (lastRevision === progress.revision) return false;
    await delay(laggingMsMax, undefined, stop);
    return progress.revision < lastRevision;
  }

  async function check(): Promise<void> {
    try {
      while (!progress.isRead) {
        await delay(Math.min(intervalMs, silentMsMax), undefined, stop);
        if (!progress.isRead && performance.now() - progress.heardAtMs > silentMsMax) return;
      }
      do await delay(intervalMs, undefined, stop);
      while (!(await isLost()));
    } catch (error) {
      if (!stopping.signal.aborted) throw error;
    } finally {
      watch.stop();
    }
  }

  const failed = check();
  // It is awaited when the watch has ended, which may be later.
  failed.catch(() => {});
  return { stop: () => stopping.abort(), failed };
}
