// The projects in memory: follows the bucket by a watch, so that a change counts within a second and a lookup is one
// Map read, whatever NATS is doing. A watch that is lost is made anew and read from the start. Must not write to the bucket.

import { setTimeout as delay } from "node:timers/promises";
import type { KvWatchEntry } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { MeteredProject, ProjectLookup } from "../types.ts";
import { type BucketPlace, openBucket, parseProject, raiseReplicas } from "./bucket.ts";
import { createMeters, type KnownMeter } from "./meters.ts";
import { checkOften } from "./watch-check.ts";

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
  /** What each project has sent to this process; those deleted lately are among them. */
  meters(): Iterable<KnownMeter>;
  close(): Promise<void>;
}

interface Entry {
  readonly project: MeteredProject;
  readonly revision: number;
}

const retryMsMin = 100;
const retryMsMax = 2_000;
const warningEveryMs = 5_000;
const checkIntervalMsDefault = 1_000;

/** Fulfilled when the projects have been read once, however long that takes. Rejects only when the signal aborts. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { connection, log, signal } = options;
  const closing = new AbortController();
  const firstReading = Promise.withResolvers<void>();
  const meters = createMeters({ nowMs: () => performance.now() });
  let entries = new Map<string, Entry>();
  let projectOf = new Map<string, MeteredProject>();
  const clashesTold = new Set<string>();
  let ready = false;
  let endWatch: (() => void) | undefined;

  function show(next: Map<string, Entry>): void {
    entries = next;
    meters.keep(entries);
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
    await raiseReplicas(connection, { config: streamInfo.config, replicas: options.replicas, log });
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
    await checks.ended;
  }

  function take(into: Map<string, Entry>, { key, operation, revision, value }: KvWatchEntry): void {
    if (operation !== "PUT") {
      into.delete(key);
      return;
    }
    const parsed = parseProject(key, value);
    if (parsed.ok) {
      const meter = meters.of(key);
      meter.limit(parsed.project.limits);
      into.set(key, { project: { ...parsed.project, meter }, revision });
      return;
    }
    log.warn({ entry: key, revision, fault: parsed.fault }, "registry entry ignored");
    // A project that was known keeps working as it was: a slip in the bucket must not turn its events away.
    const known = into.get(key) ?? entries.get(key);
    if (known !== undefined) into.set(key, known);
  }

  async function follow(): Promise<void> {
    let waitMs = retryMsMin;
    let warnedAtMs = Number.NEGATIVE_INFINITY;
    while (!closing.signal.aborted && !connection.isClosed()) {
      const startedAtMs = performance.now();
      try {
        await watchOnce();
        // After one that failed the pauses stay long, however long it took: the store is in trouble.
        if (performance.now() - startedAtMs > retryMsMax) waitMs = retryMsMin;
      } catch (error) {
        if (closing.signal.aborted) return;
        if (performance.now() - warnedAtMs >= warningEveryMs) {
          warnedAtMs = performance.now();
          log.warn({ reason: (error as Error).message }, "the project registry cannot be read, trying again");
        }
      }
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
    meters: meters.all,
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
