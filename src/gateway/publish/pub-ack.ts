// Interprets JetStream's reply to a frame. Every client that may publish could send a reply. So a
// reply counts only if it is from the stream of the frame.

import type { Msg } from "@nats-io/transport-node";
import { apiCodes, batchRefusedCodes, noRoomCodes } from "../../platform/nats/api.ts";

interface StreamMeant {
  readonly name: string;
  /** The JetStream domain of the stream. "" means no domain, undefined an unknown domain. */
  readonly domain: string | undefined;
}

export interface PubAck {
  readonly stream: string;
  readonly seq: number;
  readonly duplicate?: boolean;
  readonly domain?: string;
  /**
   * The id of the stored atomic batch. In this case, `seq` is the last sequence of the batch, and
   * `count` is its number of messages.
   */
  readonly batch?: string;
  readonly count?: number;
}

/**
 * The reasons why a reply is not an acknowledgement.
 * - `no_responders`, `refused`, `stream_full`, `server_full`, `too_large`: this send was certainly
 *   not stored.
 * - `failed`: one server failed to store the frame. Other servers of a cluster may have stored it.
 * - `batch_refused`: the atomic batch stored no message. Other sends may have stored some.
 * - `in_flight`: another send with the same message id is not committed yet, and may never be.
 * - `foreign`: the reply is from another stream or another service.
 * - `malformed`: the reply is not from JetStream.
 */
export type NoPubAck =
  | "no_responders"
  | "stream_full"
  | "server_full"
  | "too_large"
  | "refused"
  | "failed"
  | "batch_refused"
  | "in_flight"
  | "foreign"
  | "malformed";

const noRespondersStatus = 503;

/** Error codes that are not in this map count as `failed`, because the frame may be stored. */
const meanings: ReadonlyMap<number, NoPubAck> = new Map<number, NoPubAck>([
  ...noRoomCodes.map((code): [number, NoPubAck] => [code, "server_full"]),
  ...batchRefusedCodes.map((code): [number, NoPubAck] => [code, "batch_refused"]),
  [apiCodes.noLimits, "server_full"],
  [apiCodes.streamMessageExceedsMaximum, "too_large"],
  [apiCodes.streamHeaderExceedsMaximum, "too_large"],
  [apiCodes.streamDuplicateMessageConflict, "in_flight"],
  [apiCodes.clusterNotAssigned, "refused"],
  [apiCodes.clusterNotAvailable, "refused"],
  [apiCodes.clusterNotLeader, "refused"],
  [apiCodes.noAccount, "refused"],
  [apiCodes.notEnabledForAccount, "refused"],
  [apiCodes.streamNotMatch, "refused"],
  [apiCodes.notEnabled, "refused"],
  [apiCodes.streamSealed, "refused"],
  [apiCodes.streamOffline, "refused"],
  [apiCodes.streamOfflineReason, "refused"],
  [apiCodes.streamTooManyRequests, "refused"],
  [apiCodes.messageIncrementMissing, "refused"],
]);
const streamFullText = /maximum (bytes|messages)|no space left/;

/**
 * Returns the acknowledgement, or the reason why the reply is not an acknowledgement. Never throws.
 */
export function readPubAck(message: Msg, meant: StreamMeant): PubAck | NoPubAck {
  if (message.data.length === 0) {
    return message.headers?.code === noRespondersStatus ? "no_responders" : "malformed";
  }
  const reply = parsed(message);
  const stream = fieldOf(reply, "stream");
  const error = fieldOf(reply, "error");
  if (error !== undefined)
    return stream === undefined || stream === meant.name ? meaningOf(error) : "foreign";
  if (typeof stream !== "string") return "malformed";
  if (stream !== meant.name || isElsewhere(reply, meant)) return "foreign";
  if (isPubAck(reply)) return reply;
  // nats-server 2.10 answers with sequence 0 and `duplicate` if it has received the message id, but
  // has not stored the message yet.
  return fieldOf(reply, "seq") === 0 ? "in_flight" : "malformed";
}

/** A leaf node and its hub may have a stream of the same name. Then both receive the frame. */
function isElsewhere(reply: unknown, { domain }: StreamMeant): boolean {
  return domain !== undefined && (fieldOf(reply, "domain") ?? "") !== domain;
}

function isPubAck(reply: unknown): reply is PubAck {
  const seq = fieldOf(reply, "seq");
  return Number.isInteger(seq) && (seq as number) >= 1;
}

function meaningOf(error: unknown): NoPubAck {
  const code = fieldOf(error, "err_code");
  // An error without a code means that Raft did not accept the message, for example because the
  // server is no longer the leader of the stream.
  if (code === undefined || code === 0)
    return typeof fieldOf(error, "code") === "number" ? "refused" : "malformed";
  if (
    code === apiCodes.streamStoreFailed &&
    streamFullText.test(String(fieldOf(error, "description")))
  )
    return "stream_full";
  return (typeof code === "number" && meanings.get(code)) || "failed";
}

function parsed(message: Msg): unknown {
  try {
    return message.json<unknown>();
  } catch {
    return undefined;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
