// A nats-server for a run of the bench, with an empty store and Penstock's streams. The store is on
// the project's disk, because an fsync in memory would cost nothing.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { openBucket, projectValue } from "../../src/gateway/projects/registry/bucket.ts";
import { Streams } from "../../src/gateway/streams/ensure.ts";
import { findNatsServer } from "../../src/platform/embedded/find-nats-server.ts";
import { connectNats } from "../../src/platform/nats/link.ts";
import { eventsHeader, streamName } from "../../src/platform/nats/names.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";
import { createClusterStore } from "../../test/faults/cluster-store.ts";
import { startNatsServer, type TestNatsServer } from "../../test/kit/nats-server.ts";
import type { Row } from "../report/rows.ts";

export type Sync = Exclude<Row["sync"], "">;

export interface BenchNats {
  readonly url: string;
  readonly leaderUrl: string;
  readonly pid: number;
  readonly pids: readonly number[];
  readonly connection: NatsConnection;
  addProjects(count: number): Promise<void>;
  /**
   * Resolves with the numbers of messages and events in the live streams when the numbers no longer
   * grow.
   */
  stored(
    countsEvents: "by header" | "one a message",
  ): Promise<{ messages: number; events: number }>;
  purge(): Promise<void>;
  killLeader(): Promise<void>;
  end(): Promise<void>;
}

interface Servers {
  readonly nodes: readonly TestNatsServer[];
  leaderOf(stream: string): Promise<TestNatsServer>;
  remove(): Promise<void>;
}

export const prefix = "penstock";
export const workFolder = resolve(import.meta.dirname, "../../.cache/bench");
/** nats-server's default, with which an acknowledgement does not wait for the disk. */
const lazyInterval = "2m";
const streamBytesMax = 4_294_967_296;
const storeBytesMax = 256 * 1_073_741_824;
const settlePollMs = 50;
const settlePolls = 3;
const putsAtOnce = 500;

export function keyOf(project: number): string {
  return `phc_bench_${project}`;
}

export function projectIdOf(project: number): string {
  return `bench-${project}`;
}

export function natsServerBinary(): { file: string; version: string } {
  const named = process.env["PENSTOCK_NATS_SERVER"];
  return findNatsServer({ named: named === "" ? undefined : named, path: process.env["PATH"] });
}

export async function startNats(sync: Sync, partitions: number, replicas = 1): Promise<BenchNats> {
  mkdirSync(workFolder, { recursive: true });
  const folder = mkdtempSync(join(workFolder, "nats-"));
  const binary = natsServerBinary().file;
  const syncInterval = sync === "always" ? "always" : lazyInterval;
  const { nodes, remove, leaderOf } =
    replicas === 1
      ? await startSingle({ binary, folder, syncInterval })
      : await createClusterStore({ binary, folder, syncInterval, maxFileStore: storeBytesMax });
  const url = nodes.map((node) => node.url).join(",");
  const connection = await connect({ servers: url.split(",") });
  await createPenstockStreams(url, partitions, replicas);
  const manager = await jetstreamManager(connection);
  const names = Array.from({ length: partitions }, (_, partition) =>
    streamName(prefix, "live", partition),
  );

  async function messageCount(): Promise<number> {
    let count = 0;
    for (const name of names) count += (await manager.streams.info(name)).state.messages;
    return count;
  }

  async function settledCount(): Promise<number> {
    let last = await messageCount();
    for (let same = 0; same < settlePolls; ) {
      await delay(settlePollMs);
      const now = await messageCount();
      same = now === last ? same + 1 : 0;
      last = now;
    }
    return last;
  }

  return {
    url,
    leaderUrl: (await leaderOf(names[0]!)).url,
    pid: nodes[0]!.pid,
    pids: nodes.map(({ pid }) => pid),
    connection,
    addProjects: (count) => addProjects(connection, count, replicas),
    async stored(countsEvents) {
      const messages = await settledCount();
      if (countsEvents === "one a message") return { messages, events: messages };
      let events = 0;
      for (const name of names) events += await sumOfEventHeaders(connection, name);
      return { messages, events };
    },
    async purge() {
      for (const name of names) await manager.streams.purge(name);
    },
    async killLeader() {
      await (await leaderOf(names[0]!)).kill();
    },
    async end() {
      await connection.close();
      await remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Single {
  readonly binary: string;
  readonly folder: string;
  readonly syncInterval: string;
}

async function startSingle({ binary, folder, syncInterval }: Single): Promise<Servers> {
  const storeDir = join(folder, "store");
  const maxFileStore = storeBytesMax;
  const server = await startNatsServer({ binary, storeDir, syncInterval, maxFileStore });
  return { nodes: [server], leaderOf: async () => server, remove: () => server.remove() };
}

/** Penstock's code creates the streams, so that every variant uses the same stream settings. */
async function createPenstockStreams(
  url: string,
  partitions: number,
  replicas: number,
): Promise<void> {
  const config = readConfig(
    {
      PENSTOCK_PARTITIONS: String(partitions),
      PENSTOCK_REPLICAS: String(replicas),
      PENSTOCK_STREAM_BYTES_MAX: String(streamBytesMax),
    },
    {},
  );
  if (!config.ok) throw new Error(config.faults.join("; "));
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const link = await connectNats({ access: { natsUrl: url }, log });
  await new Streams({ link, settings: config.config, log }).ensure();
  await link.close();
}

async function addProjects(
  connection: NatsConnection,
  count: number,
  replicas: number,
): Promise<void> {
  const bucket = await openBucket(connection, { prefix, replicas });
  for (let from = 0; from < count; from += putsAtOnce) {
    const some = Array.from(
      { length: Math.min(putsAtOnce, count - from) },
      (_, offset) => from + offset,
    );
    await Promise.all(
      some.map((project) => {
        const id = projectIdOf(project);
        return bucket.put(
          id,
          projectValue({ id, name: id, keys: [keyOf(project)], enabled: true }),
        );
      }),
    );
  }
}

async function sumOfEventHeaders(connection: NatsConnection, stream: string): Promise<number> {
  const consumer = await jetstream(connection).consumers.get(stream, { headers_only: true });
  const { num_pending: pending } = await consumer.info();
  if (pending === 0) return 0;
  let events = 0;
  let left = pending;
  for await (const message of await consumer.consume({ max_messages: 10_000 })) {
    const count = Number(message.headers?.get(eventsHeader));
    if (!(count > 0))
      throw new Error(`count events: message ${message.seq} of ${stream} has no ${eventsHeader}`);
    events += count;
    if (--left === 0) break;
  }
  return events;
}

export function removeWorkFiles(): void {
  if (!existsSync(workFolder)) return;
  for (const name of readdirSync(workFolder)) {
    if (/^(nats|body)-/.test(name))
      rmSync(join(workFolder, name), { recursive: true, force: true });
  }
}
