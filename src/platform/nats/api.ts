// Shared access to JetStream's API: managers, error codes, and the state of a stream as its leader
// reports it.

import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";

export const nanosPerMs = 1_000_000;

/** JetStream's error codes, under the names in its server/errors.json. */
export const apiCodes = {
  accountResourcesExceeded: 10_002,
  clusterIncomplete: 10_004,
  /** Storage is missing, or the cluster is still forming. */
  clusterNoPeers: 10_005,
  clusterNotAssigned: 10_007,
  clusterNotAvailable: 10_008,
  clusterNotLeader: 10_009,
  consumerNotFound: 10_014,
  insufficientResources: 10_023,
  memoryResourcesExceeded: 10_028,
  noAccount: 10_035,
  noMessageFound: 10_037,
  notEnabledForAccount: 10_039,
  storageResourcesExceeded: 10_047,
  streamMessageExceedsMaximum: 10_054,
  streamMessageDeleteFailed: 10_057,
  streamNotFound: 10_059,
  streamNotMatch: 10_060,
  /** The entry or the stream has changed since the expected version. */
  streamWrongLastSequence: 10_071,
  streamReplicasNotSupported: 10_074,
  notEnabled: 10_076,
  streamStoreFailed: 10_077,
  streamHeaderExceedsMaximum: 10_097,
  streamSealed: 10_109,
  streamOffline: 10_118,
  /** The account has no limit for this number of replicas. */
  noLimits: 10_120,
  /** Servers before 2.11 return sequence 0 with `duplicate: true` instead of this error. */
  streamDuplicateMessageConflict: 10_158,
  streamTooManyRequests: 10_167,
  /** The stream stores counters and rejects all other messages (since 2.12). */
  messageIncrementMissing: 10_169,
  /** Errors of atomic batches, since 2.12. The code for too many batches exists since 2.14. */
  atomicPublishDisabled: 10_174,
  atomicPublishMissingSequence: 10_175,
  atomicPublishIncompleteBatch: 10_176,
  atomicPublishUnsupportedHeader: 10_177,
  atomicPublishInvalidBatchId: 10_179,
  atomicPublishTooLargeBatch: 10_199,
  atomicPublishInvalidBatchCommit: 10_200,
  /** The stream already has the message id of at least one message of the batch. */
  atomicPublishContainsDuplicate: 10_201,
  atomicPublishTooManyInFlight: 10_210,
  streamOfflineReason: 10_194,
} as const;

/** Responses to a commit that mean that nats-server stored no message of the batch. */
export const batchRefusedCodes: readonly number[] = [
  apiCodes.atomicPublishDisabled,
  apiCodes.atomicPublishMissingSequence,
  apiCodes.atomicPublishIncompleteBatch,
  apiCodes.atomicPublishUnsupportedHeader,
  apiCodes.atomicPublishInvalidBatchId,
  apiCodes.atomicPublishTooLargeBatch,
  apiCodes.atomicPublishInvalidBatchCommit,
  apiCodes.atomicPublishContainsDuplicate,
  apiCodes.atomicPublishTooManyInFlight,
];

export const noRoomCodes: readonly number[] = [
  apiCodes.accountResourcesExceeded,
  apiCodes.insufficientResources,
  apiCodes.memoryResourcesExceeded,
  apiCodes.storageResourcesExceeded,
];

/** Temporary errors: JetStream is starting, or its cluster is forming or has no leader. */
const notReadyCodes: readonly number[] = [
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

export function isConnected(connection: NatsConnection): boolean {
  return !(connection instanceof NatsConnectionImpl) || connection.protocol.connected;
}

interface ManagerOptions {
  readonly timeoutMs: number;
  /** The JetStream domain, if it differs from the domain of the connection. */
  readonly domain?: string;
}

/** Returns a manager without first checking whether JetStream is enabled. */
export function managerOf(
  connection: NatsConnection,
  { timeoutMs, ...domain }: ManagerOptions,
): Promise<JetStreamManager> {
  return jetstreamManager(connection, { ...domain, checkAPI: false, timeout: timeoutMs });
}

export function bytesMaxOf({ max_bytes: bytesMax }: Pick<StreamConfig, "max_bytes">): number {
  return bytesMax > 0 ? bytesMax : Number.POSITIVE_INFINITY;
}

export function apiPrefixOf(domain: string): string {
  return `$JS.${domain}.API`;
}

/** The response about a stream did not come from its leader. */
export class NoLeaderError extends Error {
  override name = "NoLeaderError";

  constructor(stream: string) {
    super(`stream ${stream} has no leader`);
  }
}

/** Returns the state of a stream, perhaps from a follower; undefined if there is no stream. */
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

/**
 * Returns the state of a stream from its leader; undefined if the stream does not exist. Rejects
 * with a NoLeaderError if another server responded.
 */
export async function ledStreamInfo(
  manager: JetStreamManager,
  name: string,
): Promise<StreamInfo | undefined> {
  const info = await streamInfoOf(manager, name);
  if (info !== undefined && !isFromLeader(info)) throw new NoLeaderError(name);
  return info;
}

/**
 * Returns whether a response is from the leader. Followers respond with their own state, which may
 * be old, and list the leader as a replica. Without a cluster, `cluster` is absent.
 */
export function isFromLeader({ cluster }: Pick<StreamInfo, "cluster">): boolean {
  if (cluster === undefined) return true;
  const { leader, replicas = [] } = cluster;
  return leader !== undefined && leader !== "" && !replicas.some(({ name }) => name === leader);
}
