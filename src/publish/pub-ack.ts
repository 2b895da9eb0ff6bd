// What JetStream's reply to a frame means. Knows the codes of nats-server's errors.json, of 2.10 to
// 2.15; decides nothing. Whoever may publish may also subscribe to the subject and reply: so a
// reply is taken for what it says only when it names the stream that is meant.

import type { Msg } from "@nats-io/transport-node";

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
const meanings: ReadonlyMap<number, NoPubAck> = new Map([
  [10_002, "server_full"], // JSAccountResourcesExceededErr
  [10_023, "server_full"], // JSInsufficientResourcesErr
  [10_028, "server_full"], // JSMemoryResourcesExceededErr
  [10_047, "server_full"], // JSStorageResourcesExceededErr
  [10_120, "server_full"], // JSNoLimitsErr: no limit of the account applies to this number of replicas
  [10_054, "too_large"], // JSStreamMessageExceedsMaximumErr
  [10_097, "too_large"], // JSStreamHeaderExceedsMaximumErr
  [10_158, "in_flight"], // JSStreamDuplicateMessageConflict, 2.11; before it sequence 0 with duplicate: true
  [10_007, "refused"], // JSClusterNotAssignedErr
  [10_008, "refused"], // JSClusterNotAvailErr
  [10_009, "refused"], // JSClusterNotLeaderErr
  [10_035, "refused"], // JSNoAccountErr
  [10_039, "refused"], // JSNotEnabledForAccountErr
  [10_060, "refused"], // JSStreamNotMatchErr
  [10_076, "refused"], // JSNotEnabledErr
  [10_109, "refused"], // JSStreamSealedErr
  [10_118, "refused"], // JSStreamOfflineErr
  [10_194, "refused"], // JSStreamOfflineReasonErrF, 2.12
  [10_167, "refused"], // JSStreamTooManyRequests, 2.11
  [10_169, "refused"], // JSMessageIncrMissingErr, 2.12: the stream counts, and stores no messages
]);
/** JSStreamStoreFailedF: the store's own error; its text says which. */
const storeFailedCode = 10_077;
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
  if (code === storeFailedCode && streamFullText.test(String(fieldOf(error, "description"))))
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
