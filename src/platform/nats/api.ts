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
import { NatsConnectionImpl } from "@nats-io/nats-core/internal";

/** JetStream measures time in nanoseconds. */
export const nanosPerMs = 1_000_000;

/**
 * JetStream's error codes, of nats-server 2.10 to 2.15, under the names that they have in its
 * server/errors.json.
 */
export const apiCodes = {
  accountResourcesExceeded: 10_002,
  clusterIncomplete: 10_004,
  /** No server can take the stream: for lack of room, or because the cluster is still forming. */
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
  /** The store's own error; its text says which. */
  streamMessageDeleteFailed: 10_057,
  streamNotFound: 10_059,
  streamNotMatch: 10_060,
  /** The entry, or the stream, is no longer the version that the change was made from. */
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
  /** From 2.11 on. An older server answers sequence 0 with `duplicate: true` instead. */
  streamDuplicateMessageConflict: 10_158,
  /** From 2.11 on. */
  streamTooManyRequests: 10_167,
  /** From 2.12 on: the stream keeps counters, and stores no messages. */
  messageIncrementMissing: 10_169,
  /** The codes of atomic batches are from 2.12 on, that for too many from 2.14 on. */
  atomicPublishDisabled: 10_174,
  atomicPublishMissingSequence: 10_175,
  atomicPublishIncompleteBatch: 10_176,
  atomicPublishUnsupportedHeader: 10_177,
  atomicPublishInvalidBatchId: 10_179,
  atomicPublishTooLargeBatch: 10_199,
  atomicPublishInvalidBatchCommit: 10_200,
  /** The stream knows the message id of at least one message of the batch. */
  atomicPublishContainsDuplicate: 10_201,
  atomicPublishTooManyInFlight: 10_210,
  /** From 2.12 on. */
  streamOfflineReason: 10_194,
} as const;

/**
 * The answers to the commit of an atomic batch after which no message of that batch is stored by
 * it. nats-server gives them before it stores the first one.
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

/** The server or the account has no room. */
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
 * False while the connection is lost. What fails then is not worth a log line of its own: the link
 * logs the loss.
 */
export function isConnected(connection: NatsConnection): boolean {
  return !(connection instanceof NatsConnectionImpl) || connection.protocol.connected;
}

interface ManagerOptions {
  /** How long each question may take. */
  readonly timeoutMs: number;
  /** The JetStream domain to ask, where that is not the connection's own. */
  readonly domain?: string;
}

/**
 * A manager that does not ask first whether JetStream is on. That would be one more question that
 * can fail, and each answer says whether it is.
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

/** What the subjects of another domain's API begin with. */
export function apiPrefixOf(domain: string): string {
  return `$JS.${domain}.API`;
}

/** An answer about a stream did not come from a leader of that stream. */
export class NoLeaderError extends Error {
  override name = "NoLeaderError";

  constructor(stream: string) {
    super(`stream ${stream} has no leader`);
  }
}

/**
 * Undefined when there is no such stream. The answer may come from a member of a group that has no
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
 * As streamInfoOf, but rejects with a NoLeaderError when the answer does not come from a leader.
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
 * Whether the answer comes from the stream's leader. A member of a group without a leader answers
 * what it has, which may be old. A server that is not in a cluster gives no `cluster`. A member
 * that answers leaves itself out of `replicas`, but does name the leader: so a leader that is among
 * the replicas is not the one that answered.
 */
export function isFromLeader({ cluster }: Pick<StreamInfo, "cluster">): boolean {
  if (cluster === undefined) return true;
  const { leader, replicas = [] } = cluster;
  return leader !== undefined && leader !== "" && !replicas.some(({ name }) => name === leader);
}
