// The daily salts of projects whose rules hash addresses or cookieless visitors. All gateways use the
// same salt for the same day of the calendar. A day begins and ends at different times in different
// time zones, so up to three days have a salt at the same time. A salt is erased when the day is over
// everywhere, so that no one can compute the hashes again. The clock of nats-server decides that,
// because one gateway with a wrong clock would erase the salts of all. The bucket is only at the hub:
// a copy on a leaf node would keep the salts.

import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import {
  DiscardPolicy,
  type JetStreamManager,
  jetstream,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import type { Log } from "../../../platform/base/log.ts";
import { pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import {
  apiCodes,
  apiPrefixOf,
  isApiError,
  isConnected,
  managerOf,
  nanosPerMs,
  streamInfoOf,
} from "../../../platform/nats/api.ts";
import { bucketStream, bucketSubjects } from "../../../platform/nats/names.ts";
import { saltedFromMs, saltedToMs } from "../../../rules/cookieless.ts";
import { type BucketPlace, DamagedEntryError, registryTimeoutMs } from "../registry/bucket.ts";

interface DailySaltsOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Pick<Log, "warn">;
  /** Returns the time of the events, in epoch milliseconds. */
  readonly wallMs: () => number;
  /** Returns the time at which nats-server has sent the state of a stream. */
  readonly serverMsOf?: (info: StreamInfo) => number;
}

/** The bucket at one time. */
interface SaltsBucket {
  readonly manager: JetStreamManager;
  /** The time of nats-server, in epoch milliseconds. */
  readonly nowMs: number;
  /** Changes if a salt is removed, or the bucket is created again. */
  readonly state: string;
}

interface ProjectSalts {
  readonly byDay: Map<number, Uint8Array>;
  /** The state of the bucket at the last reading. */
  state: string;
}

const saltBytes = 32;
const hourMs = 3_600_000;
/**
 * Times relative to the start of the salt's day in UTC. A salt is created up to an hour before it is
 * needed, so that no event waits for it, and is erased an hour after that, at most 52 hours later.
 */
const createdAtMs = saltedFromMs - hourMs;
const erasedAtMs = saltedToMs + hourMs;
/** The store removes a salt that no gateway has erased, without overwriting it. */
const ageMaxMs = 72 * 3_600_000;
const tickMs = 30_000;
const retryMs = 1_000;
const warningEveryMs = 60_000;
/** Salts are created earlier and erased later by this time. */
const clockErrorMaxMs = hourMs;

function saltsBucketName(prefix: string): string {
  return `${prefix}_salts`;
}

export class DailySalts {
  readonly #options: DailySaltsOptions;
  readonly #failure: SparseWarning;
  readonly #clockError: SparseWarning;
  readonly #change: SparseWarning;
  readonly #closing = new AbortController();
  readonly #salts = new Map<string, ProjectSalts>();
  #running: Promise<void> | undefined;

  constructor(options: DailySaltsOptions) {
    this.#options = options;
    this.#failure = new SparseWarning(options.log, warningEveryMs);
    this.#clockError = new SparseWarning(options.log, warningEveryMs);
    this.#change = new SparseWarning(options.log, warningEveryMs);
  }

  /** Returns the salt of a day, counted from 1970; undefined if it is not known or no longer used. */
  saltOf(projectId: string, day: number): Uint8Array | undefined {
    return this.#salts.get(projectId)?.byDay.get(day);
  }

  /**
   * Provides the salts of a project from now on. Waits for one try, because the addresses of events
   * without a salt are not stored.
   */
  async provide(projectId: string): Promise<void> {
    if (!this.#salts.has(projectId)) this.#salts.set(projectId, { byDay: new Map(), state: "" });
    const isDone = await this.#tried(async () => this.#refresh(projectId, await this.#bucket()));
    this.#running ??= this.#run(isDone);
  }

  release(projectId: string): void {
    this.#salts.delete(projectId);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(isDoneFirst: boolean): Promise<void> {
    const { signal } = this.#closing;
    for (let isDone = isDoneFirst; !signal.aborted; ) {
      await pauseUntilAborted(isDone ? tickMs : retryMs, signal, { ref: false });
      if (!signal.aborted) isDone = await this.#refreshAll();
    }
  }

  /** A failure does not stop the work for the other projects. Returns false after a failure. */
  async #refreshAll(): Promise<boolean> {
    let bucket: SaltsBucket | undefined;
    let isDone = await this.#tried(async () => {
      bucket = await this.#bucket();
    });
    if (bucket === undefined) return false;
    const now = bucket;
    const all = [...this.#salts.keys()].map((projectId) => () => this.#refresh(projectId, now));
    for (const work of [...all, () => this.eraseOld()]) {
      if (this.#closing.signal.aborted) return false;
      isDone = (await this.#tried(work)) && isDone;
    }
    return isDone;
  }

  /** Returns false if the store did not answer, or a salt is damaged. */
  async #tried(work: () => Promise<void>): Promise<boolean> {
    const { connection } = this.#options;
    if (connection.isClosed() || !isConnected(connection)) return false;
    try {
      await work();
      return true;
    } catch (error) {
      const reason = (error as Error).message;
      this.#failure.warn({ reason }, "daily salts: cannot be read or erased, trying again");
      return false;
    }
  }

  /**
   * Reads or creates the salts of all days that are today somewhere, or soon. Forgets the others.
   * Reads all again if the bucket has lost a salt, because another gateway may have created one. A
   * damaged salt stops only its own day.
   */
  async #refresh(projectId: string, bucket: SaltsBucket): Promise<void> {
    const { nowMs, state } = bucket;
    const salts = this.#salts.get(projectId);
    if (salts === undefined) return;
    const { byDay } = salts;
    for (const day of byDay.keys()) if (isOver(day, nowMs)) byDay.delete(day);
    // A salt is not created again between its last use and its erasure.
    const firstDay = Math.floor((nowMs - saltedToMs) / dayMs) + 1;
    const lastDay = Math.floor((nowMs - createdAtMs) / dayMs);
    let damaged: DamagedEntryError | undefined;
    for (let day = firstDay; day <= lastDay; day++) {
      const known = byDay.get(day);
      if (known !== undefined && salts.state === state) continue;
      const salt = await this.#readOrCreate(projectId, day, bucket);
      if (salt instanceof DamagedEntryError) {
        damaged = salt;
        continue;
      }
      if (known !== undefined && Buffer.compare(known, salt) === 0) continue;
      byDay.set(day, salt);
      if (known !== undefined)
        this.#change.warn(
          { project: projectId, day: dayOf(day * dayMs) },
          "daily salts: the bucket has lost a salt and has another one now, so visitors and addresses get other hashes for the rest of the day",
        );
    }
    if (damaged !== undefined) throw damaged;
    salts.state = state;
  }

  async #readOrCreate(
    projectId: string,
    day: number,
    { manager }: SaltsBucket,
  ): Promise<Uint8Array | DamagedEntryError> {
    const { connection, prefix, hubDomain } = this.#options;
    const subject = `${bucketSubjects(saltsBucketName(prefix))}${projectId}.${day}`;
    const publishTo = hubDomain === undefined ? subject : `${apiPrefixOf(hubDomain)}.${subject}`;
    const salt = randomBytes(saltBytes);
    try {
      const options = { expect: { lastSubjectSequence: 0 }, timeout: registryTimeoutMs };
      await jetstream(connection).publish(publishTo, salt, options);
      return salt;
    } catch (error) {
      if (!isApiError(error, apiCodes.streamWrongLastSequence)) throw error;
    }
    const stream = bucketStream(saltsBucketName(prefix));
    const found = await manager.streams.getMessage(stream, { last_by_subj: subject });
    if (found === null || found.data.length !== saltBytes)
      return new DamagedEntryError(`the salt of day ${day} of project ${projectId} is damaged`);
    return found.data;
  }

  /** Reads the state of the bucket. Creates it if it does not exist. */
  async #bucket(): Promise<SaltsBucket> {
    const { prefix, wallMs } = this.#options;
    const manager = await this.#manager();
    const stream = bucketStream(saltsBucketName(prefix));
    if ((await streamInfoOf(manager, stream)) === undefined) await this.#create(manager);
    const info = await manager.streams.info(stream);
    const nowMs = this.#serverMsOf(info);
    const errorMs = wallMs() - nowMs;
    if (Math.abs(errorMs) > clockErrorMaxMs)
      this.#clockError.warn(
        { errorMs },
        "daily salts: the clocks of the gateway and of nats-server differ by more than an hour, so events may have no salt: correct the wrong clock",
      );
    const { created, state } = info;
    return { manager, nowMs, state: `${created} ${state.first_seq} ${state.num_deleted ?? 0}` };
  }

  #serverMsOf(info: StreamInfo): number {
    const { serverMsOf = serverMsIn } = this.#options;
    return serverMsOf(info);
  }

  /** Creates the stream like a bucket that allows the deletion of single messages. */
  async #create(manager: JetStreamManager): Promise<void> {
    const { prefix, replicas } = this.#options;
    const name = saltsBucketName(prefix);
    await manager.streams.add({
      name: bucketStream(name),
      subjects: [`${bucketSubjects(name)}>`],
      num_replicas: replicas,
      max_msgs_per_subject: 1,
      max_age: ageMaxMs * nanosPerMs,
      discard: DiscardPolicy.New,
      allow_direct: true,
      allow_rollup_hdrs: true,
    });
  }

  /** Overwrites old salts in the store's files. Gateways do this at the same time, which is safe. */
  async eraseOld(): Promise<void> {
    await eraseSalts(await this.#manager(), this.#options.prefix, {
      filter: ">",
      isOld: (day, info) => isOver(day, this.#serverMsOf(info)),
    });
  }

  #manager(): Promise<JetStreamManager> {
    const { connection, hubDomain: domain } = this.#options;
    const at = { timeoutMs: registryTimeoutMs, ...(domain === undefined ? {} : { domain }) };
    return managerOf(connection, at);
  }
}

/** nats-server has sent its time since 2.10. */
function serverMsIn({ ts }: StreamInfo): number {
  const ms = ts === undefined ? Number.NaN : Date.parse(ts);
  if (Number.isNaN(ms)) throw new Error("nats-server did not send its time with the stream");
  return ms;
}

function isOver(day: number, nowMs: number): boolean {
  return nowMs - day * dayMs >= erasedAtMs;
}

export interface DamagedSalt {
  readonly projectId: string;
  /** As in `2026-06-15`. */
  readonly day: string;
  readonly stream: string;
  readonly sequence: number;
}

/** Returns the salts that gateways cannot use. */
export async function damagedSalts(
  connection: NatsConnection,
  { prefix }: Pick<BucketPlace, "prefix">,
): Promise<DamagedSalt[]> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  const name = saltsBucketName(prefix);
  const [stream, subjects] = [bucketStream(name), bucketSubjects(name)];
  if ((await streamInfoOf(manager, stream)) === undefined) return [];
  const { state } = await manager.streams.info(stream, { subjects_filter: `${subjects}>` });
  const damaged: DamagedSalt[] = [];
  for (const subject of Object.keys(state.subjects ?? {})) {
    const message = await manager.streams.getMessage(stream, { last_by_subj: subject });
    if (message === null || message.data.length === saltBytes) continue;
    const [projectId = "", day] = subject.slice(subjects.length).split(".");
    const { seq: sequence } = message;
    damaged.push({ projectId, day: dayOf(Number(day) * dayMs), stream, sequence });
  }
  return damaged;
}

/** Overwrites all salts of a project. */
export async function removeSalts(
  connection: NatsConnection,
  { prefix, id }: BucketPlace & { readonly id: string },
): Promise<void> {
  const manager = await managerOf(connection, { timeoutMs: registryTimeoutMs });
  await eraseSalts(manager, prefix, { filter: `${id}.*`, isOld: () => true });
}

async function eraseSalts(
  manager: JetStreamManager,
  prefix: string,
  {
    filter,
    isOld,
  }: { readonly filter: string; readonly isOld: (day: number, info: StreamInfo) => boolean },
): Promise<void> {
  const name = saltsBucketName(prefix);
  const [stream, subjects] = [bucketStream(name), bucketSubjects(name)];
  if ((await streamInfoOf(manager, stream)) === undefined) return;
  const info = await manager.streams.info(stream, { subjects_filter: subjects + filter });
  for (const subject of Object.keys(info.state.subjects ?? {})) {
    if (!isOld(Number(subject.slice(subject.lastIndexOf(".") + 1)), info)) continue;
    try {
      const message = await manager.streams.getMessage(stream, { last_by_subj: subject });
      if (message !== null) await manager.streams.deleteMessage(stream, message.seq, true);
    } catch (error) {
      const isGone =
        isApiError(error, apiCodes.noMessageFound) ||
        isApiError(error, apiCodes.streamMessageDeleteFailed);
      if (!isGone) throw error;
    }
  }
}
