// Reads what JetStream's reply to a frame means, and decides nothing. Clients that may publish may
// also subscribe to a frame's subject and reply to it. So a reply counts only when it names the
// stream that the frame is meant for.

import type { Msg } from "@nats-io/transport-node";
import { apiCodes, batchRefusedCodes, noRoomCodes } from "../../platform/nats/api.ts";

interface StreamMeant {
  readonly name: string;
  /** The JetStream domain that the stream is in, "" for none; undefined where that is not known. */
  readonly domain: string | undefined;
}

/**
 * An acknowledgement: the stream has the frame under this sequence, which is 1 or more.
 * `duplicate`: the stream had the frame before this send.
 */
export interface PubAck {
  readonly stream: string;
  readonly seq: number;
  readonly duplicate?: boolean;
  /** The server's JetStream domain, where it has one. */
  readonly domain?: string;
  /**
   * The id of the atomic batch that is stored, and of how many messages. `seq` is that of the last.
   */
  readonly batch?: string;
  readonly count?: number;
}

/**
 * Why a reply is no acknowledgement.
 * - `no_responders`: no stream took the frame. `refused`: the stream said no before it stored
 *   anything. After either of them this send is certainly not stored.
 * - `stream_full`: this stream has no room. `server_full`: the server or the account has none, for
 *   any stream.
 * - `too_large`: the frame is larger than a message of the stream may be, on this and every
 *   attempt.
 * - `failed`: storing went wrong at one server. In a cluster the others may have stored the frame
 *   all the same.
 * - `batch_refused`: no message of the atomic batch is stored by it. Some may be stored all the
 *   same, by other sends.
 * - `in_flight`: another send under the same message id is not committed yet, and may never be.
 *   That says nothing about this frame.
 * - `foreign`: the reply is another stream's, or another service's. `malformed`: it is not a reply
 *   of JetStream's.
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

/**
 * Every error code with which JetStream can answer a publish that has a message id, or the commit
 * of an atomic batch, and no other header of JetStream's, and every one that comes from a stream
 * which is not what it should be. Any other code counts as `failed`: the frame may be stored.
 */
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
 * Reads a reply to a frame for the stream meant: the acknowledgement, or why it is none. Never
 * throws.
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
  // Sequence 0 and `duplicate` is what nats-server 2.10 answers when it has staged the message id
  // and has not stored the message.
  return fieldOf(reply, "seq") === 0 ? "in_flight" : "malformed";
}

/**
 * Whether the reply comes from another JetStream domain. A leaf node and its hub may each have a
 * stream of the same name, and both receive what is published.
 */
function isElsewhere(reply: unknown, { domain }: StreamMeant): boolean {
  return domain !== undefined && (fieldOf(reply, "domain") ?? "") !== domain;
}

function isPubAck(reply: unknown): reply is PubAck {
  const seq = fieldOf(reply, "seq");
  return Number.isInteger(seq) && (seq as number) >= 1;
}

function meaningOf(error: unknown): NoPubAck {
  const code = fieldOf(error, "err_code");
  // An error without a code comes from Raft. It means that the proposal was not taken, as when the
  // server no longer leads the stream.
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
