// The live page's own connection to NATS. It is opened when somebody begins to watch and closed
// when nobody does any more. It says how the server and the streams are. The gateway's connection
// is another one, so that watching never delays storing.

import type { NatsConnection } from "@nats-io/nats-core";
import { pauseUntilAborted } from "../../base/retry.ts";
import { managerOf } from "../../nats/api.ts";

interface StreamSnapshot {
  readonly name: string;
  readonly messages: number;
  readonly bytes: number;
  /** The most bytes that the stream may hold; 0: no limit. */
  readonly bytesMax: number;
  /**
   * When the stream's last message came, in milliseconds since the epoch; 0: the stream is empty.
   */
  readonly lastAtMs: number;
}

export interface StoreSnapshot {
  readonly connected: boolean;
  /** Why there is no connection, where that is known. */
  readonly reason: string;
  readonly server: string;
  readonly version: string;
  readonly streams: readonly StreamSnapshot[];
  /** How many streams there are, which may be more than are listed. */
  readonly streamsTotal: number;
}

export interface StoreSession {
  /**
   * Fulfilled at the first connection, with undefined when the session ended before that. Never
   * rejects.
   */
  readonly connection: Promise<NatsConnection | undefined>;
  /** Asks the server for its streams. Rejects when it does not answer. */
  snapshot(): Promise<StoreSnapshot>;
  close(): Promise<void>;
}

interface StoreSessionOptions {
  readonly connect: () => Promise<NatsConnection>;
  readonly subjectPrefix: string;
}

const connectAgainMs = 1_000;
const askTimeoutMs = 2_000;
const streamsMax = 32;

export function openStoreSession({ connect, subjectPrefix }: StoreSessionOptions): StoreSession {
  const closing = new AbortController();
  let reason = "connecting";
  let connected = false;
  let open: NatsConnection | undefined;
  const tried = Promise.withResolvers<void>();
  const connection = keepTrying();

  async function keepTrying(): Promise<NatsConnection | undefined> {
    while (!closing.signal.aborted) {
      try {
        open = await connect();
        connected = true;
        tried.resolve();
        void follow(open);
        return open;
      } catch (error) {
        reason = (error as Error).message;
        tried.resolve();
        await pauseUntilAborted(connectAgainMs, closing.signal);
      }
    }
    return undefined;
  }

  async function follow(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === "disconnect" || type === "staleConnection") connected = false;
      else if (type === "reconnect") connected = true;
    }
  }

  async function snapshot(): Promise<StoreSnapshot> {
    // Waits for the first attempt to connect, so that the first snapshot says how that went.
    await tried.promise;
    const server = { server: open?.info?.server_name ?? "", version: open?.info?.version ?? "" };
    if (open === undefined || !connected) {
      const why = open === undefined ? reason : "the connection is lost";
      return { ...server, connected: false, reason: why, streams: [], streamsTotal: 0 };
    }
    const manager = await managerOf(open, { timeoutMs: askTimeoutMs });
    const page = await manager.streams.list(`${subjectPrefix}.>`).next();
    const streams = page.slice(0, streamsMax).map(({ config, state }) => ({
      name: config.name,
      messages: state.messages,
      bytes: state.bytes,
      bytesMax: Math.max(0, config.max_bytes),
      lastAtMs: state.messages === 0 ? 0 : Date.parse(state.last_ts),
    }));
    return { ...server, connected: true, reason: "", streams, streamsTotal: page.length };
  }

  async function close(): Promise<void> {
    closing.abort();
    await (await connection)?.close();
  }

  return { connection, snapshot, close };
}
