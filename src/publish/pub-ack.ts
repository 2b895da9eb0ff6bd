// What JetStream's reply to a frame means; decides nothing. Whoever may publish may also subscribe to
// the subject and reply: so a reply is taken for what it says only when it names the stream that is
// meant.

import type { Msg } from "@nats-io/transport-node";
import { apiCodes, noRoomCodes } from "../nats/api.ts";

export interface StreamMeant {
  readonly name: string;
  /** JetStream's domain that it is in, "" for none; undefined where that is not known. */
  readonly domain: string | undefined;
}

/**
 * An acknowledgement: the stream has the frame under this sequence, which is 1 or more.
 * `duplicate`: it had it before.
 */
export interface PubAck {
  readonly stream: string;
  readonly seq: number;
  readonly duplicate?: boolean;
  /** JetStream's domain, where the server has one. */
  readonly domain?: string;
}

/**
 * Why a reply is no acknowledgement.
 * - `no_responders`: no stream took it. `refused`: the stream said no before it stored anything. So
 *   that send is certainly not stored.
 * - `stream_full`: this stream has no room. `server_full`: the server or the account has none, for
 *   any stream.
 * - `too_large`: more than the stream takes in one message, now and on every attempt.
 * - `failed`: storing went wrong at one server. In a cluster the others may have stored it all the
 *   same.
 * - `in_flight`: another send under the same message id is not committed yet, and may never be.
 *   Says nothing about this frame.
 * - `foreign`: another stream's, or another service's. `malformed`: not a reply of JetStream's.
 */
export type NoPubAck =
  | "no_responders"
  | "stream_full"
  | "server_full"
  | "too_large"
  | "refused"
  | "failed"
  | "in_flight"
  | "foreign"
  | "malformed";

const noRespondersStatus = 503;

/**
 * All that a publish with a message id and no other header of JetStream's can be answered, and all
 * that would come of a stream that is not what it should be. Any other code is `failed`: it may be
 * stored.
 */
const meanings: ReadonlyMap<number, NoPubAck> = new Map<number, NoPubAck>([
  ...noRoomCodes.map((code): [number, NoPubAck] => [code, "server_full"]),
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
  // A server of 2.10 that has staged the message id, and has not stored the message: it says
  // sequence 0, and duplicate.
  return fieldOf(reply, "seq") === 0 ? "in_flight" : "malformed";
}

/** A leaf node and its hub may each have a stream of that name, and both hear what is published. */
function isElsewhere(reply: unknown, { domain }: StreamMeant): boolean {
  return domain !== undefined && (fieldOf(reply, "domain") ?? "") !== domain;
}

function isPubAck(reply: unknown): reply is PubAck {
  const seq = fieldOf(reply, "seq");
  return Number.isInteger(seq) && (seq as number) >= 1;
}

function meaningOf(error: unknown): NoPubAck {
  const code = fieldOf(error, "err_code");
  // Without a code it comes from Raft, which did not take the proposal, as a server that does not
  // lead any more.
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
