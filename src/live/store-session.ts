// The live page has its own connection to NATS, so that viewers never delay the storing of events.
// The connection is open while there are viewers.

import type { NatsConnection } from "@nats-io/nats-core";
import { pauseUntilAborted } from "../platform/base/retry.ts";
import { managerOf } from "../platform/nats/api.ts";

interface StreamSnapshot {
  readonly name: string;
  readonly messages: number;
  readonly bytes: number;
  readonly bytesMax: number;
  readonly lastAtMs: number;
}

export interface StoreSnapshot {
  readonly connected: boolean;
  readonly reason: string;
  readonly server: string;
  readonly version: string;
  readonly streams: readonly StreamSnapshot[];
  readonly streamsTotal: number;
}

interface StoreSessionOptions {
  readonly connect: () => Promise<NatsConnection>;
  readonly subjectPrefix: string;
}

const connectAgainMs = 1_000;
const askTimeoutMs = 2_000;
const streamsMax = 32;

export class StoreSession {
  readonly connection: Promise<NatsConnection | undefined>;
  readonly #options: StoreSessionOptions;
  readonly #closing = new AbortController();
  readonly #tried = Promise.withResolvers<void>();
  #reason = "connecting";
  #isConnected = false;
  #open: NatsConnection | undefined;

  constructor(options: StoreSessionOptions) {
    this.#options = options;
    this.connection = this.#connect();
  }

  async snapshot(): Promise<StoreSnapshot> {
    await this.#tried.promise;
    const open = this.#open;
    const server = { server: open?.info?.server_name ?? "", version: open?.info?.version ?? "" };
    const away = (reason: string): StoreSnapshot => ({
      ...server,
      connected: false,
      reason,
      streams: [],
      streamsTotal: 0,
    });
    if (open === undefined) return away(this.#reason);
    if (!this.#isConnected) return away("connection lost");
    try {
      return { ...server, connected: true, reason: "", ...(await this.#streamsOf(open)) };
    } catch {
      return away("the server does not respond");
    }
  }

  async #streamsOf(open: NatsConnection): Promise<Pick<StoreSnapshot, "streams" | "streamsTotal">> {
    const manager = await managerOf(open, { timeoutMs: askTimeoutMs });
    const subjects = `${this.#options.subjectPrefix}.>`;
    const page = await manager.streams.list(subjects).next();
    const streams = page.slice(0, streamsMax).map(({ config, state }) => ({
      name: config.name,
      messages: state.messages,
      bytes: state.bytes,
      bytesMax: Math.max(0, config.max_bytes),
      lastAtMs: state.messages === 0 ? 0 : Date.parse(state.last_ts),
    }));
    const streamsTotal =
      page.length > streamsMax ? await countOf(manager.streams.names(subjects)) : page.length;
    return { streams, streamsTotal };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await (await this.connection)?.close();
  }

  async #connect(): Promise<NatsConnection | undefined> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const open = await this.#options.connect();
        this.#open = open;
        this.#isConnected = true;
        this.#tried.resolve();
        void this.#follow(open);
        return open;
      } catch (error) {
        this.#reason = (error as Error).message;
        this.#tried.resolve();
        await pauseUntilAborted(connectAgainMs, signal);
      }
    }
    return undefined;
  }

  async #follow(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === "disconnect" || type === "staleConnection") this.#isConnected = false;
      else if (type === "reconnect") this.#isConnected = true;
    }
  }
}

async function countOf(names: AsyncIterable<string>): Promise<number> {
  let count = 0;
  for await (const _ of names) count++;
  return count;
}
