// The projects in memory: follows the bucket by a watch, so that a change counts within a second
// and a lookup is one Map read, whatever NATS is doing. A watch that is lost is made anew and read
// from the start. A bucket that is gone, or holds less than what was read before, is an outage:
// what was known goes on, and no key counts as unknown. Must not write to the bucket.

import { setTimeout as delay } from "node:timers/promises";
import type { KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../base/log.ts";
import type { ProjectLookup } from "../../base/types.ts";
import { bucketStream } from "../../nats/names.ts";
import { createMeters, type KnownMeter } from "../quota/meters.ts";
import { lossOfAll, nothingStored, type StoredEvents } from "../usage/events-before.ts";
import {
  type BucketPlace,
  bucketName,
  isProjectId,
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
import type { Clash } from "./key-map.ts";
import { type EntryNews, KnownProjects } from "./known-projects.ts";
import { checkOften, type WatchProgress } from "./watch-check.ts";

export interface RegistryOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Log;
  /** Gives up waiting for the first reading. */
  readonly signal?: AbortSignal | undefined;
  /** How often the watch is compared with the bucket. Default 1 s. */
  readonly checkIntervalMs?: number;
  /**
   * Of whom a registry that is read for the first time must say something, or it has lost them.
   * Default: of nobody.
   */
  readonly storedEvents?: () => Promise<StoredEvents>;
}

export interface Registry extends ProjectLookup {
  readonly projectsKnown: number;
  /**
   * Why what is known may not be all there is, and an operator has to do something; undefined when
   * nothing is wrong.
   */
  readonly fault: string | undefined;
  /** What an operator should know, though events can be stored. */
  readonly warnings: readonly string[];
  /** What each project has sent to this process; those deleted lately are among them. */
  meters(): Iterable<KnownMeter>;
  close(): Promise<void>;
}

const retryMsMin = 100;
const retryMsMax = 2_000;
const warningEveryMs = 5_000;
const checkIntervalMsDefault = 1_000;
const warnedPairsMax = 5;
const noProjects =
  "there is no project: every request is answered 401; add one with `penstock project add <id>`";

/**
 * Fulfilled when the projects have been read once, however long that takes, or when it is known
 * that they were lost. Rejects only when the signal aborts.
 */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { connection, log, signal } = options;
  const stream = bucketStream(bucketName(options.prefix));
  const closing = new AbortController();
  const firstReading = Promise.withResolvers<void>();
  const meters = createMeters({ nowMs: () => performance.now() });
  const known = new KnownProjects({
    onClash: tellClash,
    onGone: meters.leave,
    metered(project) {
      const meter = meters.of(project.id);
      meter.limit(project.limits);
      return { ...project, meter };
    },
  });
  let ready = false;
  let following: WatchProgress | undefined;
  let endWatch: (() => void) | undefined;
  /** What is wrong with the bucket itself, beside what it says. */
  let bucketFault: string | undefined;
  /**
   * Whether a reading has been compared with what the streams say. From then on what is known says
   * more.
   */
  let isCompared = false;
  let faultTold = false;

  function tellClash({ projects, isOver }: Clash): void {
    if (isOver) log.info({ projects }, "no key is claimed by these two projects any more");
    else
      log.error(
        { projects },
        "two projects claim one key: its events are refused until one of them gives it up",
      );
  }

  function fault(): string | undefined {
    const found = bucketFault ?? (ready ? known.fault : undefined);
    return found === undefined
      ? undefined
      : `the project registry, stream ${stream}, is not as it was: ${found}`;
  }

  /** After anything that may begin or end a fault. */
  function judge(): void {
    const found = fault();
    if (found !== undefined && !faultTold) {
      const fields = { reason: found, missing: known.missing, projects: known.size };
      log.error(
        fields,
        "the project registry is in doubt: the projects known before go on, other keys are answered 503",
      );
    }
    if (found === undefined && faultTold)
      log.info({ projects: known.size }, "the project registry is whole again");
    faultTold = found !== undefined;
  }

  /** What was read, or could not be, has been judged: requests may be answered. */
  function haveRead(): void {
    ready = true;
    judge();
    firstReading.resolve();
  }

  /** Creates the bucket at a first start alone: one that vanishes while this runs is a loss. */
  async function open(
    reader: BucketReader,
  ): Promise<{ bucket: KV; state: BucketState } | undefined> {
    const isFirst = !ready && !((await reader.state()) === undefined && (await storedNow()).any);
    const bucket = await (isFirst ? openBucket : openExistingBucket)(connection, options);
    const state = bucket === undefined ? undefined : await reader.state();
    return bucket === undefined || state === undefined ? undefined : { bucket, state };
  }

  async function storedNow(): Promise<StoredEvents> {
    return (await options.storedEvents?.()) ?? nothingStored;
  }

  /** Follows one watch until it ends, is told to end, or turns out to have missed a change. */
  async function watchOnce(): Promise<void> {
    const reader = await bucketReader(connection, bucketName(options.prefix));
    const opened = await open(reader);
    if (opened === undefined) {
      known.bucketGone();
      const projects = known.size === 1 ? "the 1 project" : `the ${known.size} projects`;
      const whose = known.size === 0 ? "" : `, with ${projects} known from it`;
      bucketFault = `it is gone${whose}; restore it from a backup, or add the projects again with their keys`;
      return haveRead();
    }
    const { bucket, state } = opened;
    const isNew = !isCompared || known.size === 0;
    // Before the reading begins: it then has whoever has stored events by now.
    const stored = isNew ? await storedNow() : nothingStored;
    const faultOnceRead = isNew ? lossOfAll(state, stored) : undefined;
    const config = await raiseConsumers(connection, { config: state.config, log });
    await raiseReplicas(connection, { config, replicas: options.replicas, log });
    const intervalMs = options.checkIntervalMs ?? checkIntervalMsDefault;
    const source = await openEntrySource({ bucket, reader, intervalMs, log });
    const progress = {
      created: state.created,
      revision: state.lastSequence,
      keys: new Set<string>(),
      isRead: false,
      heardAtMs: performance.now(),
      isConfirmed: true,
    };
    if (closing.signal.aborted) return source.stop();
    endWatch = () => source.stop();
    const checks = checkOften(reader, { watch: source, progress, intervalMs });
    try {
      await read(source, { reader, state, progress, faultOnceRead, expected: stored.projectIds });
    } finally {
      endWatch = undefined;
      following = undefined;
      source.stop();
      checks.stop();
    }
    await checks.ended;
  }

  interface Reading {
    readonly reader: BucketReader;
    readonly state: BucketState;
    readonly progress: WatchProgress;
    /** What is wrong with the bucket whatever is read; until then what was wrong before counts. */
    readonly faultOnceRead: string | undefined;
    readonly expected: ReadonlySet<string>;
  }

  /**
   * A reading counts when it is whole: what was known stays until it is. After that every change
   * counts as it comes.
   */
  async function read(source: EntrySource, reading: Reading): Promise<void> {
    const { reader, state, progress, faultOnceRead, expected } = reading;
    const entries = new Map<string, EntryNews>();
    const { created } = state;
    function show(): void {
      progress.isRead = true;
      following = progress;
      bucketFault = faultOnceRead;
      known.takeWhole({ created, lastSequence: progress.revision, entries, expected });
      isCompared = true;
      entries.clear();
      haveRead();
    }
    if (state.entries === 0) show();
    for await (const entry of source) {
      progress.revision = Math.max(progress.revision, entry.revision);
      progress.keys.add(entry.key);
      progress.heardAtMs = performance.now();
      if (progress.isRead) {
        known.take(entry.key, newsOf(entry));
        bucketFault = undefined;
        if (faultTold) judge();
        continue;
      }
      entries.set(entry.key, newsOf(entry));
      if (entry.delta !== 0) continue;
      // What serves the watch may itself be behind the leader.
      const isBehind =
        entry.revision < state.lastSequence &&
        (await reader.next(entry.revision + 1)) !== undefined;
      if (!isBehind) show();
    }
  }

  function newsOf({ key, operation, revision, value }: BucketEntry): EntryNews {
    if (operation !== "PUT") return { kind: "deleted", revision };
    const parsed = parseProject(key, value);
    if (parsed.ok) return { kind: "project", revision, project: parsed.project };
    log.warn({ entry: key, revision, fault: parsed.fault }, "registry entry ignored");
    return { kind: isProjectId(key) && !parsed.isNobodys ? "damaged" : "nobodys", revision };
  }

  async function follow(): Promise<void> {
    let waitMs = retryMsMin;
    let warnedAtMs = Number.NEGATIVE_INFINITY;
    while (!closing.signal.aborted && !connection.isClosed()) {
      const startedAtMs = performance.now();
      try {
        await watchOnce();
        // After one that failed the pauses stay long, however long it took: the store is in
        // trouble.
        if (performance.now() - startedAtMs > retryMsMax) waitMs = retryMsMin;
      } catch (error) {
        if (closing.signal.aborted) return;
        if (performance.now() - warnedAtMs >= warningEveryMs) {
          warnedAtMs = performance.now();
          log.warn(
            { reason: (error as Error).message },
            "the project registry cannot be read, trying again",
          );
        }
      }
      await delay(waitMs, undefined, { signal: closing.signal }).catch(() => {});
      waitMs = Math.min(waitMs * 2, retryMsMax);
    }
    firstReading.reject(new Error("read the project registry: the connection is closed"));
  }

  /**
   * The server forgets a watch when it stops: after a reconnect everything is read again at once.
   */
  async function renewOnReconnect(): Promise<void> {
    for await (const status of connection.status()) {
      if (closing.signal.aborted) return;
      if (status.type === "disconnect") following = undefined;
      if (status.type === "reconnect") endWatch?.();
    }
  }

  function hasNone(): boolean {
    return known.size === 0 && fault() === undefined && !known.hasDamaged;
  }

  function warnings(): string[] {
    const clashes = known.keys.contestedPairs.map(
      ([one, other]) => `projects ${one} and ${other} claim one key: its events are refused (503)`,
    );
    const more = clashes.length - warnedPairsMax;
    return [
      ...(ready && hasNone() ? [noProjects] : []),
      ...(ready && !following?.isConfirmed
        ? ["the project registry does not answer: keys it might know get 503"]
        : []),
      ...known.damaged.map(
        (entry) => `registry entry ${entry} cannot be read: keys that it might hold get 503`,
      ),
      ...clashes.slice(0, warnedPairsMax),
      ...(more > 0 ? [`and ${more} more pairs of projects`] : []),
    ];
  }

  function refusalOf(key: string): string | undefined {
    if (known.keys.isContested(key)) return "More than one project claims this API key";
    if (!ready) return "The project registry has not been read yet";
    if (fault() !== undefined)
      return "The project registry is in trouble: the key may be one of those it lacks";
    if (known.hasDamaged)
      return "An entry of the project registry cannot be read: the key may be in it";
    return following?.isConfirmed
      ? undefined
      : "The project registry does not answer: the key may be new";
  }

  // Rejected at a close that nobody waits for any more.
  firstReading.promise.catch(() => {});
  const followed = follow();
  void renewOnReconnect();
  signal?.addEventListener("abort", () => firstReading.reject(signal.reason), { once: true });
  if (signal?.aborted) firstReading.reject(signal.reason);
  async function close(): Promise<void> {
    closing.abort();
    endWatch?.();
    await followed;
  }
  try {
    await firstReading.promise;
  } catch (error) {
    void close();
    throw error;
  }
  log.info({ projects: known.size }, "project registry read");
  if (hasNone()) log.warn({}, noProjects);
  return {
    get projectsKnown() {
      return known.size;
    },
    get fault() {
      return fault();
    },
    get warnings() {
      return warnings();
    },
    // A Map goes by a seeded hash of the whole text: how long it takes says nothing of how much of
    // a key was right.
    byKey: (key) => known.keys.get(key),
    refusalOf,
    meters: meters.all,
    close,
  };
}
