// Shared access to JetStream's API: creating a manager, the meaning of error codes, and reading a
// stream's state from its leader. Independent of what a stream is for.

import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";

/** JetStream measures time in nanoseconds. */
export const nanosPerMs = 1_000_000;

/**
 * JetStream's error codes, of nats-server 2.10 to 2.15, under their names in its
 * server/errors.json.
 */
export const apiCodes = {
  accountResourcesExceeded: 10_002,
  clusterIncomplete: 10_004,
  /**
   * No server can host the stream: for lack of storage, or because the cluster is still forming.
   */
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
  /** The store's own error; its text states which. */
  streamMessageDeleteFailed: 10_057,
  streamNotFound: 10_059,
  streamNotMatch: 10_060,
  /** The entry, or the stream, has changed since the version on which the change is based. */
  streamWrongLastSequence: 10_071,
  /** More than one replica on a server that is not in a cluster. */
  streamReplicasNotSupported: 10_074,
  notEnabled: 10_076,
  /** The store's own error; its text states which. */
  streamStoreFailed: 10_077,
  streamHeaderExceedsMaximum: 10_097,
  streamSealed: 10_109,
  streamOffline: 10_118,
  /** No limit of the account applies to this number of replicas. */
  noLimits: 10_120,
  /** Since 2.11. An older server returns sequence 0 with `duplicate: true` instead. */
  streamDuplicateMessageConflict: 10_158,
  /** Since 2.11. */
  streamTooManyRequests: 10_167,
  /** Since 2.12: the stream stores counters, and accepts no other messages. */
  messageIncrementMissing: 10_169,
  /** The codes of atomic batches exist since 2.12, that for too many since 2.14. */
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
  /** Since 2.12. */
  streamOfflineReason: 10_194,
} as const;

/**
 * Responses to the commit of an atomic batch that mean that none of its messages was stored.
 * nats-server sends them before it stores the first one.
 */
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

/** The server or the account has no storage left. */
export const noRoomCodes: readonly number[] = [
  apiCodes.accountResourcesExceeded,
  apiCodes.insufficientResources,
  apiCodes.memoryResourcesExceeded,
  apiCodes.storageResourcesExceeded,
];

/**
 * JetStream is still starting, or its cluster is still forming or has no leader. Waiting may help.
 */
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

/**
 * False while the connection is lost. A failure then needs no log line of its own: the link logs
 * the loss.
 */
export function isConnected(connection: NatsConnection): boolean {
  return !(connection instanceof NatsConnectionImpl) || connection.protocol.connected;
}

interface ManagerOptions {
  /** Timeout of each request. */
  readonly timeoutMs: number;
  /** The JetStream domain, if it is not the connection's own. */
  readonly domain?: string;
}

/**
 * Returns a manager that does not check first whether JetStream is enabled. That would be one more
 * request that can fail, and each response shows it.
 */
export function managerOf(
  connection: NatsConnection,
  { timeoutMs, ...domain }: ManagerOptions,
): Promise<JetStreamManager> {
  return jetstreamManager(connection, { ...domain, checkAPI: false, timeout: timeoutMs });
}

/** The maximum size of a stream in bytes; Infinity without a limit. */
export function bytesMaxOf({ max_bytes: bytesMax }: Pick<StreamConfig, "max_bytes">): number {
  return bytesMax > 0 ? bytesMax : Number.POSITIVE_INFINITY;
}

/** The subject prefix of another domain's API. */
export function apiPrefixOf(domain: string): string {
  return `$JS.${domain}.API`;
}

/** A response about a stream did not come from the stream's leader. */
export class NoLeaderError extends Error {
  override name = "NoLeaderError";

  constructor(stream: string) {
    super(`stream ${stream} has no leader`);
  }
}

/**
 * Undefined if the stream does not exist. The response may come from a member of a group without a
 * leader.
 */
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
 * Like streamInfoOf, but rejects with a NoLeaderError if the response does not come from a leader.
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
 * Whether the response comes from the stream's leader. A member of a group without a leader
 * responds with its own state, which may be old. A server that is not in a cluster sends no
 * `cluster`. A member that responds omits itself from `replicas`, but names the leader: so a leader
 * that is among the replicas is not the one that responded.
 */
export function isFromLeader({ cluster }: Pick<StreamInfo, "cluster">): boolean {
  if (cluster === undefined) return true;
  const { leader, replicas = [] } = cluster;
  return leader !== undefined && leader !== "" && !replicas.some(({ name }) => name === leader);
}
