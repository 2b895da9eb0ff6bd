// The usage record: what each project has sent. A bucket with one value per project and gateway
// process. Values with three parts in their keys belong to gateway/streams/project-shares.ts.

import { DiscardPolicy, jetstream, type StreamConfig } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../../../platform/base/forms.ts";
import type { Log } from "../../../platform/base/log.ts";
import { apiCodes, isApiError, managerOf, nanosPerMs } from "../../../platform/nats/api.ts";
import { type Counts, noCounts } from "../quota/meter.ts";
import { type BucketPlace, raiseReplicas } from "../registry/bucket.ts";

/** One process's counts of one project since its start, so a value replaces the previous one. */
export interface UsageRecord extends Counts {
  /** Begin and end of the counts, in milliseconds since the epoch. */
  readonly sinceMs: number;
  readonly atMs: number;
  /** The last interval of counting, which ended at `atMs`: its length and its events. */
  readonly lately: {
    readonly seconds: number;
    readonly accepted: number;
    readonly rateLimited: number;
  };
}

/** One project's counts, summed over all processes, including ended ones. */
export interface ProjectUsage extends Counts {
  readonly projectId: string;
  /** The earliest `sinceMs` and the latest `atMs` of the records in the sum. */
  readonly sinceMs: number;
  readonly atMs: number;
  /** Events per second of the processes that counted events in the last half minute. */
  readonly acceptedPerSecond: number;
  readonly rateLimitedPerSecond: number;
}

const apiTimeoutMs = 1_000;
const retentionMs = 30 * 24 * 3_600_000;
/** Room for some 200,000 values. When full, the longest unchanged value is replaced. */
export const usageBytesMax = 67_108_864;
/** Maximum age of a record that counts for the rates: three writing intervals. */
const latelyMsMax = 30_000;

export function usageBucketName(prefix: string): string {
  return `${prefix}_usage`;
}

interface OpenUsageBucket extends BucketPlace {
  /** Milliseconds for which the streams retain events. Default: 30 days, the minimum. */
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

/** Lets a full bucket evict its oldest values. The client creates one that rejects every write. */
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

/** `processId` may have only the characters of a project id. */
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
      // Older versions did not write the next two.
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
  /** Id of the only project to read. Default: all projects. */
  readonly projectId?: string | undefined;
  readonly nowMs: number;
}

/** Sorted by project id, without projects that have sent nothing. Creates no bucket. */
export async function readUsage(
  connection: NatsConnection,
  options: ReadUsage,
): Promise<ProjectUsage[]> {
  const { projectId, nowMs } = options;
  if (projectId !== undefined && !isProjectId(projectId)) return [];
  const js = jetstream(connection, { timeout: apiTimeoutMs });
  const bucket = await new Kvm(js).open(usageBucketName(options.prefix));
  const entries = await bucket.history({ key: `${projectId ?? "*"}.*` }).catch(noneIfAbsent);
  const usages = new Map<string, ProjectUsage>();
  for await (const { key, value, operation } of entries) {
    const record = operation === "PUT" ? parseUsage(value) : undefined;
    if (record === undefined) continue;
    const id = key.slice(0, key.indexOf("."));
    usages.set(id, sum(usages.get(id) ?? noUsage(id), record, nowMs));
  }
  return [...usages.values()].sort((left, right) => (left.projectId < right.projectId ? -1 : 1));
}

function noneIfAbsent(error: unknown): never[] {
  if (isApiError(error, apiCodes.streamNotFound)) return [];
  throw error;
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
