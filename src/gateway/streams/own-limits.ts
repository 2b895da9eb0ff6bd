// The limits that `penstock stream set` has taken over from the settings, in a bucket. They are not
// in the configuration of the stream: JetStream only replaces whole configurations, so a gateway
// that starts at the same moment could write back what it had read before. A gateway reads the
// bucket before and after each change of a stream, so the last change always wins.

import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstream,
  type StreamConfig,
} from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { objectIn } from "../../platform/base/json.ts";
import { apiCodes, isApiError, streamInfoOf } from "../../platform/nats/api.ts";
import { bucketStream, bucketSubjects } from "../../platform/nats/names.ts";

const ownable = ["max_age", "max_bytes"] as const;
export type OwnLimit = (typeof ownable)[number];

/** The limits of a stream that the settings do not change, in nanoseconds and bytes. */
export type OwnLimits = Partial<Readonly<Pick<StreamConfig, OwnLimit>>>;

interface LimitsOf {
  readonly prefix: string;
  readonly stream: string;
}

export function limitsBucket(prefix: string): string {
  return `${prefix}_limits`;
}

/** Reads the limits from the leader of the bucket. Rejects with the error of the request. */
export async function readOwnLimits(
  manager: JetStreamManager,
  which: LimitsOf,
): Promise<OwnLimits> {
  return (await readEntry(manager, which)).limits;
}

interface Entry {
  readonly limits: OwnLimits;
  /** 0 if there is no entry. */
  readonly revision: number;
}

async function readEntry(manager: JetStreamManager, { prefix, stream }: LimitsOf): Promise<Entry> {
  const bucket = limitsBucket(prefix);
  try {
    const key = { last_by_subj: `${bucketSubjects(bucket)}${stream}` };
    const found = await manager.streams.getMessage(bucketStream(bucket), key);
    const value = objectIn(found?.string() ?? "") ?? {};
    const limits = ownable.filter((limit) => Number.isInteger(value[limit]));
    return {
      limits: Object.fromEntries(limits.map((limit) => [limit, value[limit]])),
      revision: found?.seq ?? 0,
    };
  } catch (error) {
    if (isApiError(error, apiCodes.streamNotFound)) return { limits: {}, revision: 0 };
    throw error;
  }
}

const conflictCodes: readonly number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
];

interface LimitsChange extends LimitsOf {
  readonly replicas: number;
  /** Runs again with the current limits if another command has changed them meanwhile. */
  readonly change: (limits: OwnLimits) => OwnLimits;
}

/**
 * Changes the stored limits and returns them. Creates the bucket with as many replicas as the stream
 * has. Rejects with the error of JetStream if other commands change the limits twice meanwhile.
 */
export async function changeOwnLimits(
  connection: NatsConnection,
  manager: JetStreamManager,
  { change, replicas, ...which }: LimitsChange,
): Promise<OwnLimits> {
  const kvm = new Kvm(jetstream(connection));
  const name = limitsBucket(which.prefix);
  const isThere = (await streamInfoOf(manager, bucketStream(name))) !== undefined;
  const bucket = isThere ? await kvm.open(name) : await kvm.create(name, { replicas, history: 1 });
  const attempt = async () => {
    const { limits: before, revision: previousSeq } = await readEntry(manager, which);
    const limits = change(before);
    await bucket.put(which.stream, JSON.stringify(limits), { previousSeq });
    return limits;
  };
  return await attempt().catch((error: unknown) => {
    if (error instanceof JetStreamApiError && conflictCodes.includes(error.code)) return attempt();
    throw error;
  });
}

/** Raises the replicas of the bucket, because the streams may have had fewer when it was created. */
export async function raiseLimitsReplicas(
  manager: JetStreamManager,
  prefix: string,
  replicas: number,
): Promise<void> {
  const stream = bucketStream(limitsBucket(prefix));
  const info = await streamInfoOf(manager, stream);
  if (info !== undefined && info.config.num_replicas < replicas)
    await manager.streams.update(stream, { num_replicas: replicas });
}
