// The connection to NATS. Waits for the first one for ever, reconnects for ever, and says when the
// connection comes and goes. At a disconnect the client drops what is pending, and it has no limit
// of its own on what it holds: so nothing may be published while `connected` is false. Must not
// know of streams or frames.

import { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { NatsConnectionImpl, type ProtocolHandler } from "@nats-io/nats-core/internal";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { Log } from "../base/log.ts";
import { retryWithWarning, SparseWarning } from "../base/retry.ts";
import { accessOptions, connectFault, type NatsAccess, shownUrls } from "./access.ts";

interface NatsLinkOptions {
  /** Which servers to connect to, and as whom. Its files are read at each connect. */
  readonly access: NatsAccess;
  readonly log: Log;
  /** Its abort ends the wait for the first connection: connectNats then rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** How often the server is pinged. A link counts as dead after three pings without an answer. */
  readonly pingIntervalMs?: number | undefined;
}

export interface NatsLink {
  readonly connection: NatsConnection;
  readonly connected: boolean;
  /**
   * How many bytes the server says it takes in one message, headers included. Keeps its value while
   * disconnected.
   */
  readonly messageBytesMax: number;
  /**
   * Sends one whole protocol message, such as HPUB, straight from the memory it is in. That memory
   * must stay as it is until the server has answered. Throws when the connection is closed. The
   * caller must mind the message's size: past max_payload the server cuts the connection.
   */
  send(message: Buffer): void;
  /**
   * Ends the connection and makes one to the next server in the client's list. Returns false, and
   * does nothing, while disconnected or where there is no other server.
   */
  tryAnotherServer(): boolean;
  /** The listener hears of each loss and each reconnect, in order. */
  onChange(listener: (connected: boolean) => void): void;
  /** Sends what is pending and closes for good. */
  close(): Promise<void>;
}

const reconnectWaitMs = 100;
const reconnectJitterMs = 150;
const connectTimeoutMs = 2_000;
const firstConnectWaitMs = 500;
// A dead link is noticed after 4 s. The rest of a cluster takes no less to agree on leaders without
// the node behind that link.
const pingIntervalMsDefault = 1_000;
const pingsUnansweredMax = 3;
// The client says that a dead link is stale, and then waits for the link's last bytes to leave.
// After this long the socket is cut.
const staleGraceMs = 500;
const drainMsMax = 2_000;
/** How often the log says again that we wait for NATS. */
const waitingLogEveryMs = 5_000;

/** Connects, however long it takes. Rejects only when the signal aborts. */
export async function connectNats(options: NatsLinkOptions): Promise<NatsLink> {
  const connection = await firstConnection(options);
  return new WatchedLink(connection, options.log);
}

async function firstConnection(options: NatsLinkOptions): Promise<NatsConnection> {
  const { access, log, signal } = options;
  const attempt = async (): Promise<NatsConnection> => {
    const connection = await connect(clientOptions(options));
    if (signal?.aborted) await connection.close();
    signal?.throwIfAborted();
    return connection;
  };
  return await retryWithWarning(attempt, {
    pauseMs: firstConnectWaitMs,
    signal,
    warning: new SparseWarning(log, waitingLogEveryMs),
    explain(error) {
      signal?.throwIfAborted();
      const fields = { servers: shownUrls(access.natsUrl), reason: connectFault(error, access) };
      return { fields, message: "waiting for NATS" };
    },
  });
}

function clientOptions({ access, pingIntervalMs }: NatsLinkOptions): Parameters<typeof connect>[0] {
  return {
    ...accessOptions(access),
    name: "penstock",
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectWaitMs,
    reconnectJitter: reconnectJitterMs,
    reconnectJitterTLS: reconnectJitterMs,
    pingInterval: pingIntervalMs ?? pingIntervalMsDefault,
    maxPingOut: pingsUnansweredMax,
    // A server may refuse our credentials for a while, as when its settings are being rolled out.
    // The client then goes on trying.
    ignoreAuthErrorAbort: true,
  };
}

class WatchedLink implements NatsLink {
  readonly connection: NatsConnection;
  readonly #log: Log;
  readonly #protocol: ProtocolHandler;
  readonly #listeners: ((connected: boolean) => void)[] = [];
  #connected = true;
  #messageBytesMax: number;
  /**
   * The server that is to be left, and how many more times that may be tried: the client goes
   * through its servers in turn, and may come to the same one first.
   */
  #leaving = { server: "", tries: 0 };

  constructor(connection: NatsConnection, log: Log) {
    this.connection = connection;
    this.#log = log;
    this.#protocol = protocolOf(connection);
    this.#messageBytesMax = connection.info?.max_payload ?? 0;
    this.#follow().catch((error: unknown) =>
      log.error({ err: error }, "following the NATS connection failed"),
    );
  }

  get connected(): boolean {
    return this.#connected;
  }

  get messageBytesMax(): number {
    return this.#messageBytesMax;
  }

  send(message: Buffer): void {
    if (this.connection.isClosed()) throw new Error("send: the connection is closed");
    this.#protocol.sendCommand(message);
  }

  tryAnotherServer(): boolean {
    const others = this.#protocol.servers.length() - 1;
    if (!this.#connected || others < 1) return false;
    this.#leaving = { server: this.connection.getServer(), tries: others };
    this.#leave();
    return true;
  }

  onChange(listener: (connected: boolean) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    const { connection } = this;
    if (connection.isClosed()) return;
    // Draining needs an answer from the server, which may never come.
    if (this.#connected)
      await Promise.race([
        connection.drain().catch(() => {}),
        delay(drainMsMax, undefined, { ref: false }),
      ]);
    await connection.close();
  }

  /**
   * A connection that drains or is closed rejects this, and that is ignored: its server is being
   * left anyway.
   */
  #leave(): void {
    this.connection.reconnect().catch(() => {});
  }

  async #follow(): Promise<void> {
    const { connection } = this;
    for await (const status of connection.status()) {
      switch (status.type) {
        case "disconnect":
          this.#log.warn({ server: status.server }, "NATS connection lost");
          this.#changeTo(false);
          break;
        case "reconnect":
          this.#reconnected(status.server);
          break;
        case "staleConnection":
          this.#changeTo(false);
          setTimeout(cutIfStillOpen, staleGraceMs, connection, socketOf(connection)).unref();
          break;
        case "error":
          this.#log.error({ reason: status.error.message }, "NATS reports an error");
          break;
        default:
      }
    }
    this.#changeTo(false);
  }

  #reconnected(server: string): void {
    if (server === this.#leaving.server && this.#leaving.tries-- > 0) {
      this.#leave();
      return;
    }
    this.#leaving = { server: "", tries: 0 };
    this.#log.info({ server }, "NATS connected again");
    this.#changeTo(true);
  }

  #changeTo(connected: boolean): void {
    if (this.#connected === connected) return;
    this.#connected = connected;
    if (connected)
      this.#messageBytesMax = this.connection.info?.max_payload ?? this.#messageBytesMax;
    for (const listener of this.#listeners) listener(connected);
  }
}

/** The `host:port` of each server that the client knows: of those given and those announced. */
export function serverPlaces(connection: NatsConnection): string[] {
  const servers = protocolOf(connection).servers.getServers();
  return servers.map(({ hostname, port }) =>
    hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`,
  );
}

/**
 * The client's internal handler, which takes whole protocol messages. The client's `publish` would
 * copy them.
 */
function protocolOf(connection: NatsConnection): ProtocolHandler {
  if (!(connection instanceof NatsConnectionImpl))
    throw new Error("use NATS connection: of an unknown kind");
  return connection.protocol;
}

/**
 * The client has no way to cut a connection whose send buffer is full, so this gets the socket out
 * of the client.
 */
function socketOf(connection: NatsConnection): Socket | undefined {
  const socket: unknown = Reflect.get(protocolOf(connection).transport, "socket");
  return socket instanceof Socket ? socket : undefined;
}

function cutIfStillOpen(connection: NatsConnection, stale: Socket | undefined): void {
  if (stale !== undefined && socketOf(connection) === stale && !stale.destroyed) stale.destroy();
}
