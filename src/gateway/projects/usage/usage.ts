// The usage record counts what each project has sent. It is a bucket with one value per project and
// gateway process. Values whose keys have three parts belong to
// `gateway/streams/project-shares.ts`.

import { DiscardPolicy, jetstream, type StreamConfig } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../../../platform/base/forms.ts";
import type { Log } from "../../../platform/base/log.ts";
import { atMost, pauseUntilAborted, SparseWarning } from "../../../platform/base/retry.ts";
import {
  apiCodes,
  isApiError,
  isConnected,
  managerOf,
  nanosPerMs,
} from "../../../platform/nats/api.ts";
import { type Counts, type KnownMeter, type Meter, noCounts } from "../quota/meter.ts";
import { type BucketPlace, raiseReplicas } from "../registry/bucket.ts";

interface UsageRecord extends Counts {
  readonly sinceMs: number;
  readonly atMs: number;
  readonly lately: {
    readonly seconds: number;
    readonly accepted: number;
    readonly rateLimited: number;
  };
}

export interface ProjectUsage extends Counts {
  readonly projectId: string;
  readonly sinceMs: number;
  readonly atMs: number;
  readonly acceptedPerSecond: number;
  readonly rateLimitedPerSecond: number;
}

const apiTimeoutMs = 1_000;
export const usageWriteMsMax = apiTimeoutMs;
const retentionMs = 30 * 24 * 3_600_000;
/**
 * This is enough for about 200,000 values. When the bucket is full, the oldest value is removed.
 */
export const usageBytesMax = 67_108_864;
const latelyMsMax = 30_000;

export function usageBucketName(prefix: string): string {
  return `${prefix}_usage`;
}

interface OpenUsageBucket extends BucketPlace {
  readonly ageMaxMs?: number;
  readonly log: Pick<Log, "warn">;
}

/** Opens or creates the bucket, and raises its replicas. Rejects if JetStream does not answer. */
export async function openUsageBucket(
  connection: NatsConnection,
  options: OpenUsageBucket,
): Promise<KV> {
  const { prefix, replicas, log, ageMaxMs = 0 } = options;
  const js = jetstream(connection, { timeout: apiTimeoutMs });
  const ttl = Math.max(retentionMs, ageMaxMs);
  const limits = { replicas, history: 1, ttl, max_bytes: usageBytesMax };
  const bucket = await new Kvm(js).create(usageBucketName(prefix), limits);
  const { config } = (await bucket.status()).streamInfo;
  await raiseReplicas(connection, {
    config: await adjusted(connection, config, ttl * nanosPerMs),
    replicas,
    log,
  });
  return bucket;
}

/** Changes the discard policy, because by default a full bucket rejects all writes. */
async function adjusted(
  connection: NatsConnection,
  config: StreamConfig,
  ageMin: number,
): Promise<StreamConfig> {
  const age = config.max_age > 0 ? Math.max(config.max_age, ageMin) : config.max_age;
  if (config.discard === DiscardPolicy.Old && config.max_age === age) return config;
  const manager = await managerOf(connection, { timeoutMs: apiTimeoutMs });
  const wanted = { ...config, discard: DiscardPolicy.Old, max_age: age };
  return (await manager.streams.update(config.name, wanted)).config;
}

/** `processId` may contain only characters that are allowed in a project id. */
export function usageKey(projectId: string, processId: string): string {
  return `${projectId}.${processId}`;
}

export function usageValue(record: UsageRecord): string {
  const { accepted, unknown, dropped, lately } = record;
  return JSON.stringify({
    accepted,
    stored_bytes: record.storedBytes,
    unknown,
    dropped,
    rate_limited: {
      requests: record.rateLimitedRequests,
      events: record.rateLimitedEvents,
      bytes: record.rateLimitedBytes,
    },
    since: new Date(record.sinceMs).toISOString(),
    at: new Date(record.atMs).toISOString(),
    lately: {
      seconds: lately.seconds,
      accepted: lately.accepted,
      rate_limited: lately.rateLimited,
    },
  });
}

function parseUsage(value: Uint8Array): UsageRecord | undefined {
  try {
    const { accepted, stored_bytes, unknown, dropped, rate_limited, since, at, lately } =
      JSON.parse(new TextDecoder().decode(value));
    const record = {
      accepted,
      storedBytes: stored_bytes ?? 0,
      unknown: unknown ?? 0,
      dropped,
      rateLimitedRequests: rate_limited.requests,
      rateLimitedEvents: rate_limited.events,
      rateLimitedBytes: rate_limited.bytes,
      sinceMs: Date.parse(since),
      atMs: Date.parse(at),
    };
    const stretch = {
      seconds: lately.seconds,
      accepted: lately.accepted,
      rateLimited: lately.rate_limited,
    };
    if (![...Object.values(record), ...Object.values(stretch)].every(Number.isFinite))
      return undefined;
    return { ...record, lately: stretch };
  } catch {
    return undefined;
  }
}

interface ReadUsage extends BucketPlace {
  readonly projectId?: string | undefined;
  readonly nowMs: number;
}

export async function readUsage(
  connection: NatsConnection,
  options: ReadUsage,
): Promise<ProjectUsage[]> {
  const { projectId, nowMs } = options;
  if (projectId !== undefined && !isProjectId(projectId)) return [];
  const js = jetstream(connection, { timeout: apiTimeoutMs });
  const bucket = await new Kvm(js).open(usageBucketName(options.prefix));
  const entries = await bucket.history({ key: `${projectId ?? "*"}.*` }).catch((error: unknown) => {
    if (isApiError(error, apiCodes.streamNotFound)) return [];
    throw error;
  });
  const usages = new Map<string, ProjectUsage>();
  for await (const { key, value, operation } of entries) {
    const record = operation === "PUT" ? parseUsage(value) : undefined;
    if (record === undefined) continue;
    const id = key.slice(0, key.indexOf("."));
    usages.set(id, sum(usages.get(id) ?? noUsage(id), record, nowMs));
  }
  return [...usages.values()].sort((left, right) => (left.projectId < right.projectId ? -1 : 1));
}

const countNames = Object.keys(noCounts) as (keyof Counts)[];

function noUsage(projectId: string): ProjectUsage {
  return {
    projectId,
    ...noCounts,
    sinceMs: Number.POSITIVE_INFINITY,
    atMs: 0,
    acceptedPerSecond: 0,
    rateLimitedPerSecond: 0,
  };
}

function sum(usage: ProjectUsage, record: UsageRecord, nowMs: number): ProjectUsage {
  const { seconds, accepted, rateLimited } = record.lately;
  const isRecent = nowMs - record.atMs <= latelyMsMax && seconds > 0;
  const total = { ...usage };
  for (const name of countNames) total[name] += record[name];
  total.sinceMs = Math.min(usage.sinceMs, record.sinceMs);
  total.atMs = Math.max(usage.atMs, record.atMs);
  if (isRecent) {
    total.acceptedPerSecond += accepted / seconds;
    total.rateLimitedPerSecond += rateLimited / seconds;
  }
  return total;
}

interface UsageWriterOptions extends BucketPlace {
  readonly connection: NatsConnection;
  readonly processId: string;
  readonly meters: () => Iterable<KnownMeter>;
  readonly exists: (projectId: string) => boolean;
  readonly log: Pick<Log, "warn">;
  readonly wallMs: () => number;
  readonly intervalMs?: number;
}

interface Collected {
  readonly counts: Counts;
  atMs: number;
  isWritten: boolean;
}

interface Change {
  readonly key: string;
  readonly record: UsageRecord;
  readonly seen: Collected;
}

const intervalMsDefault = 10_000;
const failuresInARowMax = 3;
/** Writes pause after this number of values, so that at most 100 are written per second. */
const writesInARow = 10;
const pauseMs = 100;
const writesAtOnceAtEnd = 64;
const endMsMax = 1_000;
const warningEveryMs = 60_000;

export class UsageWriter {
  readonly #options: UsageWriterOptions;
  readonly #intervalMs: number;
  readonly #closing = new AbortController();
  readonly #sinceMs: number;
  readonly #collected = new WeakMap<Meter, Collected>();
  readonly #warning: SparseWarning;
  readonly #writing: Promise<void>;
  #collectedMs: number;
  #bucket: Promise<KV> | undefined;

  constructor(options: UsageWriterOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? intervalMsDefault;
    this.#sinceMs = options.wallMs();
    this.#collectedMs = this.#sinceMs;
    this.#warning = new SparseWarning(options.log, warningEveryMs);
    this.#writing = this.#keepWriting();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await atMost(endMsMax, this.#writeRest());
  }

  async #keepWriting(): Promise<void> {
    const { signal } = this.#closing;
    await pauseUntilAborted(this.#intervalMs, signal, { ref: false });
    while (!signal.aborted) {
      let count = 0;
      let failures = 0;
      for (const change of this.#changes()) {
        failures = (await this.#write(change)) ? 0 : failures + 1;
        if (++count % writesInARow === 0) await pauseUntilAborted(pauseMs, signal, { ref: false });
        if (signal.aborted || failures >= failuresInARowMax) break;
      }
      await pauseUntilAborted(this.#intervalMs, signal, { ref: false });
    }
  }

  *#changes(): Generator<Change> {
    const { processId, wallMs, exists } = this.#options;
    for (const { projectId, meter } of this.#collect()) {
      if (!exists(projectId)) continue;
      const before = this.#collected.get(meter)!;
      const { counts } = meter;
      const atMs = wallMs();
      if (before.isWritten && areSame(counts, before.counts)) {
        before.atMs = atMs;
        continue;
      }
      const seen = { counts, atMs, isWritten: false };
      this.#collected.set(meter, seen);
      const lately = {
        seconds: (atMs - before.atMs) / 1_000,
        accepted: counts.accepted - before.counts.accepted,
        rateLimited: counts.rateLimitedEvents - before.counts.rateLimitedEvents,
      };
      const record = { ...counts, sinceMs: this.#sinceMs, atMs, lately };
      // If a meter has been evicted, the project's next meter counts from 0. It has its own key, so
      // that it does not overwrite the earlier counts.
      const from = meter.series === 0 ? processId : `${processId}-${meter.series}`;
      yield { key: usageKey(projectId, from), record, seen };
    }
  }

  /**
   * All meters are read before the first value is written, because a round of writes may end early.
   */
  #collect(): KnownMeter[] {
    const all = [...this.#options.meters()];
    for (const { meter } of all) {
      if (!this.#collected.has(meter))
        this.#collected.set(meter, { counts: noCounts, atMs: this.#collectedMs, isWritten: true });
    }
    this.#collectedMs = this.#options.wallMs();
    return all;
  }

  async #write({ key, record, seen }: Change): Promise<boolean> {
    try {
      this.#bucket ??= openUsageBucket(this.#options.connection, this.#options);
      await (await this.#bucket).put(key, usageValue(record));
      seen.isWritten = true;
      return true;
    } catch (error) {
      // The bucket may have been deleted. So the next attempt opens or creates it again.
      this.#bucket = undefined;
      if (isConnected(this.#options.connection))
        this.#warning.warn(
          { reason: (error as Error).message },
          "usage record cannot be written: trying again",
        );
      return false;
    }
  }

  async #writeRest(): Promise<void> {
    await this.#writing;
    const rest = [...this.#changes()];
    for (let from = 0; from < rest.length; from += writesAtOnceAtEnd) {
      const some = rest.slice(from, from + writesAtOnceAtEnd);
      const written = await Promise.all(some.map((change) => this.#write(change)));
      if (!written.includes(true)) return;
    }
  }
}

function areSame(left: Counts, right: Counts): boolean {
  const names = ["accepted", "unknown", "dropped", "rateLimitedRequests"] as const;
  return names.every((name) => left[name] === right[name]);
}
