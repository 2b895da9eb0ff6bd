// The connection to NATS. Waits for servers that are not there, for ever, and rejects at the start
// if one refuses this process. Later it reconnects for ever, also through refusals, and logs one
// line when the connection is lost, one a minute while it is, and one when it is back. At a
// disconnect the client drops what is pending, and it has no limit of its own on what it holds: so
// nothing may be published while `connected` is false. Must not know of streams or frames.

import { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import {
  AuthorizationError,
  PermissionViolationError,
  UserAuthenticationExpiredError,
} from "@nats-io/nats-core";
import { NatsConnectionImpl, type ProtocolHandler } from "@nats-io/nats-core/internal";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Log } from "../base/log.ts";
import { retryWithWarning, SparseWarning } from "../base/retry.ts";
import { type NatsAccess, shownUrls } from "./access.ts";
import { apiRefusal, connectOnce, NatsRefusedError, outlastRefusals, signIn } from "./sign-in.ts";

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
  /** The error if it means that NATS refuses for good what this process needs; else undefined. */
  refusal(error: unknown): NatsRefusedError | undefined;
  /** The listener hears of each loss and each reconnect, in order. */
  onChange(listener: (connected: boolean) => void): void;
  /** The listener is called with each subject that NATS did not let this process publish to. */
  onDenied(listener: (subject: string, refusal: NatsRefusedError) => void): void;
  /** Sends what is pending and closes for good. */
  close(): Promise<void>;
}

const reconnectWaitMs = 100;
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
/** How often the log repeats that the first connection is waited for. */
const waitingLogEveryMs = 5_000;
/** How often the log repeats that a connection is lost, or that NATS reports the same error. */
const lostLogEveryMs = 60_000;
/** How long the reason of a loss may be looked for before the loss is logged. */
const reasonMsMax = 1_000;
/** The shortest pause before a server that refuses this process is tried again. */
const refusedWaitMs = 1_500;

/**
 * Connects, however long it takes. Rejects with a NatsRefusedError if a server refuses this
 * process, and with the signal's reason when the signal aborts.
 */
export async function connectNats(options: NatsLinkOptions): Promise<NatsLink> {
  const { access, log, signal } = options;
  const pauses = new ReconnectPauses();
  const connection = await retryWithWarning(() => firstConnection(options, pauses), {
    pauseMs: firstConnectWaitMs,
    signal,
    warning: new SparseWarning(log, waitingLogEveryMs),
    explain(error) {
      signal?.throwIfAborted();
      if (error instanceof NatsRefusedError) throw error;
      const { message: reason } = error as Error;
      return {
        fields: { servers: shownUrls(access.natsUrl), reason },
        message: "waiting for NATS",
      };
    },
  });
  return new WatchedLink(connection, { access, log, pauses });
}

/** Rejects as soon as the signal aborts: a server may take seconds to answer. */
async function firstConnection(
  { access, pingIntervalMs, signal }: NatsLinkOptions,
  pauses: ReconnectPauses,
): Promise<NatsConnection> {
  const connecting = connectOnce(access, {
    name: "penstock",
    timeoutMs: connectTimeoutMs,
    reconnectDelayHandler: () => pauses.nextMs(),
    pingInterval: pingIntervalMs ?? pingIntervalMsDefault,
    maxPingOut: pingsUnansweredMax,
  });
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => {
    connecting.then((connection) => connection.close()).catch(() => {});
    aborted.reject(signal?.reason);
  };
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const connection = await Promise.race([connecting, aborted.promise]);
    outlastRefusals(connection);
    return connection;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

/** The pauses between attempts to reconnect to a server: longer while it refuses this process. */
class ReconnectPauses {
  isRefused = false;

  nextMs(): number {
    const waitMs = this.isRefused ? refusedWaitMs : reconnectWaitMs;
    return waitMs * (1 + 1.5 * Math.random());
  }
}

interface Watched {
  readonly access: NatsAccess;
  readonly log: Log;
  readonly pauses: ReconnectPauses;
}

class WatchedLink implements NatsLink {
  readonly connection: NatsConnection;
  readonly #access: NatsAccess;
  readonly #log: Log;
  readonly #pauses: ReconnectPauses;
  readonly #protocol: ProtocolHandler;
  /** By the kind of error. */
  readonly #errors = new Map<string, SparseWarning>();
  /** Resolved with the server when a lost connection is back, with undefined when it is closed. */
  #back = Promise.withResolvers<string | undefined>();
  /** Fulfilled when all losses so far are logged to their end. */
  #losses: Promise<void> = Promise.resolve();
  readonly #listeners: ((connected: boolean) => void)[] = [];
  readonly #deniedListeners: ((subject: string, refusal: NatsRefusedError) => void)[] = [];
  #connected = true;
  #messageBytesMax: number;
  /**
   * The server that is to be left, and how many more times that may be tried: the client goes
   * through its servers in turn, and may come to the same one first.
   */
  #leaving = { server: "", tries: 0 };

  constructor(connection: NatsConnection, { access, log, pauses }: Watched) {
    this.connection = connection;
    this.#access = access;
    this.#log = log;
    this.#pauses = pauses;
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

  refusal(error: unknown): NatsRefusedError | undefined {
    const found = apiRefusal(error, this.#access);
    return found && new NatsRefusedError({ server: this.connection.getServer(), ...found });
  }

  onChange(listener: (connected: boolean) => void): void {
    this.#listeners.push(listener);
  }

  onDenied(listener: (subject: string, refusal: NatsRefusedError) => void): void {
    this.#deniedListeners.push(listener);
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
          this.#changeTo(false, status.server);
          break;
        case "reconnect":
          this.#reconnected(status.server);
          break;
        case "staleConnection":
          this.#changeTo(false, connection.getServer());
          setTimeout(cutIfStillOpen, staleGraceMs, connection, socketOf(connection)).unref();
          break;
        case "error":
          this.#reported(status.error);
          break;
        default:
      }
    }
    this.#changeTo(false);
    this.#back.resolve(undefined);
  }

  /** The reason of a refusal is logged with the loss of the connection. */
  #reported(error: Error): void {
    if (error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError) {
      this.#pauses.isRefused = true;
      return;
    }
    // Rejected to the one who asked, too.
    if (error instanceof PermissionViolationError && error.subject.includes(".API.")) return;
    const refusal = this.refusal(error);
    if (error instanceof PermissionViolationError && refusal && error.operation === "publish")
      for (const listener of this.#deniedListeners) listener(error.subject, refusal);
    const warning = this.#errors.get(error.name) ?? new SparseWarning(this.#log, lostLogEveryMs);
    this.#errors.set(error.name, warning);
    const fix = refusal && { fix: refusal.fix };
    warning.warn({ reason: error.message, ...fix }, "NATS reports an error");
  }

  /** The client reports a reconnect once for each attempt that failed before it. */
  #reconnected(server: string): void {
    if (this.#connected) return;
    if (server === this.#leaving.server && this.#leaving.tries-- > 0) {
      this.#leave();
      return;
    }
    this.#leaving = { server: "", tries: 0 };
    this.#pauses.isRefused = false;
    this.#changeTo(true, server);
  }

  /** Without a server, the connection is closed for good. */
  #changeTo(connected: boolean, server?: string): void {
    if (this.#connected === connected) return;
    this.#connected = connected;
    if (connected) {
      this.#messageBytesMax = this.connection.info?.max_payload ?? this.#messageBytesMax;
      this.#back.resolve(server);
    } else if (server !== undefined) {
      this.#back = Promise.withResolvers();
      const back = this.#back.promise;
      this.#losses = this.#losses.then(() => this.#logLoss(server, back));
    }
    for (const listener of this.#listeners) listener(connected);
  }

  /** Logs that the connection is lost and why, again each minute, and that it is back. */
  async #logLoss(server: string, back: Promise<string | undefined>): Promise<void> {
    const access = this.#access;
    let isOver = false;
    void back.then(() => {
      isOver = true;
    });
    const lost = "NATS connection lost";
    for (let message = lost; !isOver; message = "NATS is still not connected") {
      const found = await Promise.race([signIn(access, reasonMsMax), back.then(() => undefined)]);
      if (isOver && message !== lost) break;
      if (found?.kind === "refused") {
        const { reason, fix } = found;
        if (!isOver) this.#pauses.isRefused = true;
        this.#log.error({ server: found.server, reason, fix }, `${message}: refused`);
      } else {
        const reason = found?.kind === "absent" ? { reason: found.reason } : {};
        this.#log.warn({ server, ...reason }, message);
      }
      await Promise.race([back, delay(lostLogEveryMs, undefined, { ref: false })]);
    }
    const again = await back;
    if (again !== undefined) this.#log.info({ server: again }, "NATS connected again");
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
