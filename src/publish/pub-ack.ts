// What JetStream's reply to a frame means. Knows the codes of nats-server's errors.json; decides nothing.

import type { Msg } from "@nats-io/transport-node";

/**
 * - `stored`, `duplicate`: acknowledged.
 * - `no_responders`: no stream took it, so it is certainly not stored.
 * - `stream_full`: this stream has no room. `server_full`: the server or the account has none, for any stream.
 * - `too_large`: more than the stream takes in one message, now and on every attempt.
 * - `refused`: another error; JetStream may take it in a moment. `malformed`: not a reply of JetStream's.
 */
export type PubAck =
  | "stored"
  | "duplicate"
  | "no_responders"
  | "stream_full"
  | "server_full"
  | "too_large"
  | "refused"
  | "malformed";

const noRespondersStatus = 503;
/** Account limit, server limit, memory limit, storage limit. */
const serverFullCodes = new Set([10_002, 10_023, 10_028, 10_047]);
const tooLargeCode = 10_054;
/** The store's own error; its text says which. */
const storeFailedCode = 10_077;
const streamFullText = /maximum (bytes|messages)|no space left/;

/** Reads a reply. Never throws. */
export function readPubAck(message: Msg): PubAck {
  if (message.data.length === 0) {
    return message.headers?.code === noRespondersStatus ? "no_responders" : "malformed";
  }
  const reply = parsed(message);
  const error = fieldOf(reply, "error");
  if (error !== undefined) return verdictOf(error);
  if (typeof fieldOf(reply, "seq") !== "number" || typeof fieldOf(reply, "stream") !== "string") return "malformed";
  return fieldOf(reply, "duplicate") === true ? "duplicate" : "stored";
}

function verdictOf(error: unknown): PubAck {
  const code = fieldOf(error, "err_code");
  if (typeof code === "number" && serverFullCodes.has(code)) return "server_full";
  if (code === tooLargeCode) return "too_large";
  const full = code === storeFailedCode && streamFullText.test(String(fieldOf(error, "description")));
  return full ? "stream_full" : "refused";
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
