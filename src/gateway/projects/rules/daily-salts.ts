// The daily salts of projects whose rules hash addresses or cookieless visitors. All gateways use the
// same salt for the same day of the calendar. A day begins and ends at different times in different
// time zones, so up to three days have a salt at the same time. A salt is erased when the day is over
// everywhere, so that no one can compute the hashes again. The bucket is only at the hub: a copy on a
// leaf node would keep the salts.

import { randomBytes } from "node:crypto";
import { DiscardPolicy, type JetStreamManager, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { dayMs } from "../../../platform/base/day.ts";
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
import { type BucketPlace, registryTimeoutMs } from "../registry/bucket.ts";

interface DailySaltsOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly log: Pick<Log, "warn">;
  /** Returns the time of the events, in epoch milliseconds. */
  readonly wallMs: () => number;
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

function saltsBucketName(prefix: string): string {
  return `${prefix}_salts`;
}

export class DailySalts {
  readonly #options: DailySaltsOptions;
  readonly #warning: SparseWarning;
  readonly #closing = new AbortController();
  readonly #salts = new Map<string, Map<number, Uint8Array>>();
  #running: Promise<void> | undefined;

  constructor(options: DailySaltsOptions) {
    this.#options = options;
    this.#warning = new SparseWarning(options.log, warningEveryMs);
  }

  /** Returns the salt of a day, counted from 1970; undefined if it is not known or no longer used. */
  saltOf(projectId: string, day: number): Uint8Array | undefined {
    return this.#salts.get(projectId)?.get(day);
  }

  /**
   * Provides the salts of a project from now on. Waits for one try, because the addresses of events
   * without a salt are not stored.
   */
  async provide(projectId: string): Promise<void> {
    if (!this.#salts.has(projectId)) this.#salts.set(projectId, new Map());
    const isDone = await this.#tried(() => this.#refresh(projectId));
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
    const all = [...this.#salts.keys()].map((projectId) => () => this.#refresh(projectId));
    let isDone = true;
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
      this.#warning.warn({ reason }, "daily salts: cannot be read or erased, trying again");
      return false;
    }
  }

  /** Reads or creates the salts of all days that are today somewhere, or soon. Forgets the others. */
  async #refresh(projectId: string): Promise<void> {
    const nowMs = this.#options.wallMs();
    const salts = this.#salts.get(projectId);
    if (salts === undefined) return;
    for (const day of salts.keys()) if (isOver(day, nowMs)) salts.delete(day);
    // A salt is not created again between its last use and its erasure.
    const firstDay = Math.floor((nowMs - saltedToMs) / dayMs) + 1;
    const lastDay = Math.floor((nowMs - createdAtMs) / dayMs);
    for (let day = firstDay; day <= lastDay; day++)
      if (!salts.has(day)) salts.set(day, await this.#readOrCreate(projectId, day));
  }

  async #readOrCreate(projectId: string, day: number): Promise<Uint8Array> {
    const { connection, prefix, hubDomain } = this.#options;
    const manager = await this.#manager();
    await this.#ensureBucket(manager);
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
      throw new Error(`the salt of day ${day} of project ${projectId} is damaged`);
    return found.data;
  }

  /** Creates the stream like a bucket that allows the deletion of single messages. */
  async #ensureBucket(manager: JetStreamManager): Promise<void> {
    const { prefix, replicas } = this.#options;
    const name = saltsBucketName(prefix);
    if ((await streamInfoOf(manager, bucketStream(name))) !== undefined) return;
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
    const { prefix, wallMs } = this.#options;
    const nowMs = wallMs();
    await eraseSalts(await this.#manager(), prefix, {
      filter: ">",
      isOld: (day) => isOver(day, nowMs),
    });
  }

  #manager(): Promise<JetStreamManager> {
    const { connection, hubDomain: domain } = this.#options;
    const at = { timeoutMs: registryTimeoutMs, ...(domain === undefined ? {} : { domain }) };
    return managerOf(connection, at);
  }
}

function isOver(day: number, nowMs: number): boolean {
  return nowMs - day * dayMs >= erasedAtMs;
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
  { filter, isOld }: { readonly filter: string; readonly isOld: (day: number) => boolean },
): Promise<void> {
  const name = saltsBucketName(prefix);
  const [stream, subjects] = [bucketStream(name), bucketSubjects(name)];
  if ((await streamInfoOf(manager, stream)) === undefined) return;
  const { state } = await manager.streams.info(stream, { subjects_filter: subjects + filter });
  for (const subject of Object.keys(state.subjects ?? {})) {
    if (!isOld(Number(subject.slice(subject.lastIndexOf(".") + 1)))) continue;
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
