// JetStream's API as all of Penstock asks it: how a manager is made, what error codes mean, how a
// stream's state is read so that it counts. Must not know what a stream is for.

import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";

/** JetStream measures time in nanoseconds. */
export const nanosPerMs = 1_000_000;

/**
 * JetStream's error codes, of nats-server 2.10 to 2.15, under the names that they have in its
 * server/errors.json.
 */
export const apiCodes = {
  accountResourcesExceeded: 10_002,
  clusterIncomplete: 10_004,
  /** No server can take it: for lack of room, or because the cluster is still forming. */
  clusterNoPeers: 10_005,
  clusterNotAssigned: 10_007,
  clusterNotAvailable: 10_008,
  clusterNotLeader: 10_009,
  insufficientResources: 10_023,
  maximumConsumersLimit: 10_026,
  memoryResourcesExceeded: 10_028,
  noAccount: 10_035,
  notEnabledForAccount: 10_039,
  storageResourcesExceeded: 10_047,
  streamMessageExceedsMaximum: 10_054,
  streamNotFound: 10_059,
  streamNotMatch: 10_060,
  /** The entry, or the stream, is not as the change was made from. */
  streamWrongLastSequence: 10_071,
  /** More than one replica, asked of a server that is in no cluster. */
  streamReplicasNotSupported: 10_074,
  notEnabled: 10_076,
  /** The store's own error; its text says which. */
  streamStoreFailed: 10_077,
  streamHeaderExceedsMaximum: 10_097,
  streamSealed: 10_109,
  streamOffline: 10_118,
  /** No limit of the account applies to this number of replicas. */
  noLimits: 10_120,
  /** From 2.11 on; before, the answer is sequence 0 with `duplicate: true`. */
  streamDuplicateMessageConflict: 10_158,
  /** From 2.11 on. */
  streamTooManyRequests: 10_167,
  /** From 2.12 on: the stream counts, and stores no messages. */
  messageIncrementMissing: 10_169,
  /** From 2.12 on. */
  streamOfflineReason: 10_194,
} as const;

/** The server or the account has no room. */
export const noRoomCodes: readonly number[] = [
  apiCodes.accountResourcesExceeded,
  apiCodes.insufficientResources,
  apiCodes.memoryResourcesExceeded,
  apiCodes.storageResourcesExceeded,
];

/** JetStream is on its way up, or its cluster still forms or has no leader: waiting may help. */
export const notReadyCodes: readonly number[] = [
  apiCodes.clusterIncomplete,
  apiCodes.clusterNoPeers,
  apiCodes.clusterNotAssigned,
  apiCodes.clusterNotAvailable,
  apiCodes.clusterNotLeader,
  apiCodes.notEnabled,
];

export function isApiError(error: unknown, code: number): error is JetStreamApiError {
  return error instanceof JetStreamApiError && error.code === code;
}

export function isNotReady(error: unknown): boolean {
  return error instanceof JetStreamApiError && notReadyCodes.includes(error.code);
}

export interface ManagerOptions {
  /** How long each question may take. */
  readonly timeoutMs: number;
  /** Another JetStream domain than the connection's own. */
  readonly domain?: string;
}

/**
 * Does not ask first whether JetStream is on: that would be one more question that can fail, and
 * each answer says it.
 */
export function managerOf(
  connection: NatsConnection,
  { timeoutMs, ...domain }: ManagerOptions,
): Promise<JetStreamManager> {
  return jetstreamManager(connection, { ...domain, checkAPI: false, timeout: timeoutMs });
}

/** How many bytes a stream takes; Infinity without a limit. */
export function bytesMaxOf({ max_bytes: bytesMax }: Pick<StreamConfig, "max_bytes">): number {
  return bytesMax > 0 ? bytesMax : Number.POSITIVE_INFINITY;
}

/** What begins the subjects of another domain's API. */
export function apiPrefixOf(domain: string): string {
  return `$JS.${domain}.API`;
}

/** Whoever answered knows no leader of the stream. */
export class NoLeaderError extends Error {
  override name = "NoLeaderError";

  constructor(stream: string) {
    super(`stream ${stream} has no leader`);
  }
}

/** Undefined when there is no such stream. Whoever answers may be a member without a leader. */
export async function streamInfoOf(
  manager: JetStreamManager,
  name: string,
): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (isApiError(error, apiCodes.streamNotFound)) return undefined;
    throw error;
  }
}

/** As streamInfoOf, and rejects with a NoLeaderError what a leader has not said. */
export async function ledStreamInfo(
  manager: JetStreamManager,
  name: string,
): Promise<StreamInfo | undefined> {
  const info = await streamInfoOf(manager, name);
  if (info !== undefined && !isFromLeader(info)) throw new NoLeaderError(name);
  return info;
}

/**
 * Whether the stream's leader says it: a member of a group without one answers what it has, which
 * may be old. A server that is not in a cluster says nothing of one. A member does not name itself
 * among the others, but does name the leader.
 */
export function isFromLeader({ cluster }: Pick<StreamInfo, "cluster">): boolean {
  if (cluster === undefined) return true;
  const { leader, replicas = [] } = cluster;
  return leader !== undefined && leader !== "" && !replicas.some(({ name }) => name === leader);
}
