// The connection to NATS. It waits for servers that are unreachable, and reconnects forever.
// Nothing may be published while `connected` is false. A disconnect discards messages that were not
// sent yet, and the buffer of the client has no limit.

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
import { atMost, retryWithWarning, SparseWarning } from "../base/retry.ts";
import { type NatsAccess, shownUrls } from "./access.ts";
import { apiRefusal, connectOnce, NatsRefusedError, outlastRefusals, signIn } from "./sign-in.ts";

interface NatsLinkOptions {
  readonly access: NatsAccess;
  readonly log: Log;
  readonly signal?: AbortSignal | undefined;
  /** The client closes the connection after three pings without an answer. */
  readonly pingIntervalMs?: number | undefined;
}

export interface NatsLink {
  readonly connection: NatsConnection;
  readonly connected: boolean;
  /** The maximum size of a message with its headers. It does not change while disconnected. */
  readonly messageBytesMax: number;
  /**
   * Sends `message`, which must be one complete protocol message. The caller must not change the
   * buffer until the server has responded. Throws if the connection is closed.
   */
  send(message: Buffer): void;
  tryAnotherServer(): boolean;
  refusal(error: unknown): NatsRefusedError | undefined;
  onChange(listener: (connected: boolean) => void): void;
  onDenied(listener: (subject: string, refusal: NatsRefusedError) => void): void;
  close(): Promise<void>;
}

const reconnectWaitMs = 100;
const connectTimeoutMs = 2_000;
const firstConnectWaitMs = 500;
// With these values, the client detects a dead connection after 4 s. This is also how long an
// election in a cluster takes.
const pingIntervalMsDefault = 1_000;
const pingsUnansweredMax = 3;
// After this time, the gateway closes the socket of a dead connection, because the client would
// wait longer.
const staleGraceMs = 500;
const drainMsMax = 2_000;
const waitingLogEveryMs = 5_000;
const lostLogEveryMs = 60_000;
const reasonMsMax = 1_000;
const refusedWaitMs = 1_500;

/** Connects without a time limit. Rejects with a NatsRefusedError or the signal's reason. */
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
  readonly #errors = new Map<string, SparseWarning>();
  #back = Promise.withResolvers<string | undefined>();
  #losses: Promise<void> = Promise.resolve();
  readonly #listeners: ((connected: boolean) => void)[] = [];
  readonly #deniedListeners: ((subject: string, refusal: NatsRefusedError) => void)[] = [];
  #connected = true;
  #messageBytesMax: number;
  #leaving = { server: "", tries: 0 };

  constructor(connection: NatsConnection, { access, log, pauses }: Watched) {
    this.connection = connection;
    this.#access = access;
    this.#log = log;
    this.#pauses = pauses;
    this.#protocol = protocolOf(connection);
    this.#messageBytesMax = connection.info?.max_payload ?? 0;
    this.#follow().catch((error: unknown) =>
      log.error({ err: error }, "bug: the task that follows the NATS connection threw an error"),
    );
  }

  get connected(): boolean {
    return this.#connected;
  }

  get messageBytesMax(): number {
    return this.#messageBytesMax;
  }

  send(message: Buffer): void {
    if (this.connection.isClosed()) throw new Error("cannot send: the connection is closed");
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
    // The time is limited, because the server may never respond to the drain.
    if (this.#connected)
      await atMost(
        drainMsMax,
        connection.drain().catch(() => {}),
      );
    await connection.close();
  }

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

  #reported(error: Error): void {
    if (error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError) {
      this.#pauses.isRefused = true;
      return;
    }
    // This error is ignored here, because the caller that sent the request also receives it.
    if (error instanceof PermissionViolationError && error.subject.includes(".API.")) return;
    const refusal = this.refusal(error);
    if (error instanceof PermissionViolationError && refusal && error.operation === "publish")
      for (const listener of this.#deniedListeners) listener(error.subject, refusal);
    const warning = this.#errors.get(error.name) ?? new SparseWarning(this.#log, lostLogEveryMs);
    this.#errors.set(error.name, warning);
    const fix = refusal && { fix: refusal.fix };
    warning.warn({ reason: error.message, ...fix }, "NATS error");
  }

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
        this.#log.error(
          { server: found.server, reason, fix },
          `${message}: the server rejects this process`,
        );
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

export function serverPlaces(connection: NatsConnection): string[] {
  const servers = protocolOf(connection).servers.getServers();
  return servers.map(({ hostname, port }) =>
    hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`,
  );
}

function protocolOf(connection: NatsConnection): ProtocolHandler {
  if (!(connection instanceof NatsConnectionImpl))
    throw new Error("unsupported version of the NATS client: a connection has no protocol handler");
  return connection.protocol;
}

function socketOf(connection: NatsConnection): Socket | undefined {
  const socket: unknown = Reflect.get(protocolOf(connection).transport, "socket");
  return socket instanceof Socket ? socket : undefined;
}

function cutIfStillOpen(connection: NatsConnection, stale: Socket | undefined): void {
  if (stale !== undefined && socketOf(connection) === stale && !stale.destroyed) stale.destroy();
}
