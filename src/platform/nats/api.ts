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

/** The error codes of JetStream. Their names are from its server/errors.json. */
export const apiCodes = {
  accountResourcesExceeded: 10_002,
  clusterIncomplete: 10_004,
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
  streamWrongLastSequence: 10_071,
  streamReplicasNotSupported: 10_074,
  notEnabled: 10_076,
  streamStoreFailed: 10_077,
  streamHeaderExceedsMaximum: 10_097,
  streamSealed: 10_109,
  streamOffline: 10_118,
  noLimits: 10_120,
  /** Servers before 2.11 return sequence 0 with `duplicate: true` instead of this error. */
  streamDuplicateMessageConflict: 10_158,
  streamTooManyRequests: 10_167,
  messageIncrementMissing: 10_169,
  atomicPublishDisabled: 10_174,
  atomicPublishMissingSequence: 10_175,
  atomicPublishIncompleteBatch: 10_176,
  atomicPublishUnsupportedHeader: 10_177,
  atomicPublishInvalidBatchId: 10_179,
  atomicPublishTooLargeBatch: 10_199,
  atomicPublishInvalidBatchCommit: 10_200,
  atomicPublishContainsDuplicate: 10_201,
  atomicPublishTooManyInFlight: 10_210,
  streamOfflineReason: 10_194,
} as const;

/** After each of these errors, nats-server has stored no message of the batch. */
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
  readonly domain?: string;
}

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

export class NoLeaderError extends Error {
  override name = "NoLeaderError";

  constructor(stream: string) {
    super(`stream ${stream} has no leader`);
  }
}

/**
 * Returns the state of a stream, or undefined if it does not exist. The state may be from a
 * follower, and then it may be old.
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
 * Returns the state of a stream from its leader, or undefined if the stream does not exist. Rejects
 * with a NoLeaderError if the leader does not respond.
 */
export async function ledStreamInfo(
  manager: JetStreamManager,
  name: string,
): Promise<StreamInfo | undefined> {
  const info = await streamInfoOf(manager, name);
  if (info !== undefined && !isFromLeader(info)) throw new NoLeaderError(name);
  return info;
}

/** Returns the number of messages of a subject without wildcards. Rejects if there is no stream. */
export async function countMessages(
  manager: JetStreamManager,
  stream: string,
  subject: string,
): Promise<number> {
  const { state } = await manager.streams.info(stream, { subjects_filter: subject });
  return state.subjects?.[subject] ?? 0;
}

/** A follower responds with its own state, which may be old. It lists the leader as a replica. */
export function isFromLeader({ cluster }: Pick<StreamInfo, "cluster">): boolean {
  if (cluster === undefined) return true;
  const { leader, replicas = [] } = cluster;
  return leader !== undefined && leader !== "" && !replicas.some(({ name }) => name === leader);
}
