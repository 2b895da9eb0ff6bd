import { rmSync } from "node:fs";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, describe, onTestFinished, test } from "vitest";
import {
  type OpenReader,
  readerAt,
  type StorePlace,
} from "../../../../src/readers/effects/store/open.ts";
import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";
import {
  EffectsWriter,
  type EffectsWriterOptions,
} from "../../../../src/readers/effects/writer/effects-writer.ts";
import {
  type DatabaseKind,
  type EffectsDatabases,
  openedStore,
  startDatabases,
} from "../../../kit/effects-databases.ts";
import { undisturbedDump } from "../../../kit/effects-dumps.ts";
import {
  findNatsServer,
  oldestNatsServer,
  startNatsServer,
  type TestNatsServer,
  untilStreamsGone,
} from "../../../kit/nats-server.ts";
import { silent } from "../../../kit/processes.ts";
import { makeStreams } from "../../../kit/stored-events.ts";

export interface WriterRig {
  readonly databases: EffectsDatabases;
  readonly nats: TestNatsServer;
  readonly connection: NatsConnection;
  openStore(place?: StorePlace): Promise<EffectsStore>;
  openReader(place: StorePlace): Promise<OpenReader>;
  startWriter(settings: WriterSettings): EffectsWriter;
  testWithSqlite(name: string, body: () => Promise<void>): void;
  undisturbed(settings?: Partial<WriterSettings>, place?: StorePlace): Promise<string[]>;
}

type WriterSettings = Omit<EffectsWriterOptions, "connection" | "prefix" | "log"> &
  Partial<Pick<EffectsWriterOptions, "log" | "connection">>;

/**
 * SQLite runs with the newest available nats-server, and PostgreSQL with the oldest supported
 * version.
 */
const servers: Readonly<Record<DatabaseKind, () => string>> = {
  SQLite: findNatsServer,
  PostgreSQL: oldestNatsServer,
};

export async function describeWriter(
  kind: DatabaseKind,
  tests: (rig: WriterRig) => void,
): Promise<void> {
  const nats = await startNatsServer({ syncInterval: "2m", binary: servers[kind]() });
  const databases = await startDatabases(kind);
  const connection = await connect({
    servers: nats.url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
    reconnectJitter: 0,
  });
  afterAll(async () => {
    await connection.close();
    await databases.remove();
    await nats.remove();
  });
  describe(`the effects writer on ${kind}`, () => {
    beforeEach(async () => {
      await deleteStreams(connection, nats);
      await makeStreams(connection);
    });
    tests(rigOf({ nats, databases, connection }));
  });
}

function rigOf(parts: Pick<WriterRig, "nats" | "databases" | "connection">): WriterRig {
  const { databases, connection } = parts;
  async function openStore(place?: StorePlace): Promise<EffectsStore> {
    const store = await openedStore(place ?? (await databases.newDatabase()));
    onTestFinished(() => store.close());
    return store;
  }
  return {
    ...parts,
    openStore,
    async openReader(place) {
      const reader = await readerAt(place);
      onTestFinished(() => reader.close());
      return reader;
    },
    startWriter(settings) {
      const writer = new EffectsWriter({
        connection,
        prefix: "penstock",
        log: silent,
        ...settings,
      });
      writer.start();
      writer.ended().catch(() => {});
      onTestFinished(() => writer.close());
      return writer;
    },
    testWithSqlite(name, body) {
      if (databases.kind === "SQLite") test(name, body);
    },
    async undisturbed(settings = {}, place) {
      return await undisturbedDump(await openStore(place), { connection, ...settings });
    },
  };
}

export async function deleteStreams(
  connection: NatsConnection,
  nats: Pick<TestNatsServer, "storeDir">,
): Promise<void> {
  const manager = await jetstreamManager(connection);
  const names: string[] = [];
  for await (const name of manager.streams.names()) names.push(name);
  for (const name of names) await manager.streams.delete(name);
  await untilStreamsGone(nats, names);
}

export function storeWith(store: EffectsStore, own: Partial<EffectsStore>): EffectsStore {
  return new Proxy(store, {
    get: (of, name: keyof EffectsStore) => {
      const value = own[name] ?? of[name];
      return typeof value === "function" ? value.bind(of) : value;
    },
  });
}

export function goneAfterTest(folder: string): string {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}
