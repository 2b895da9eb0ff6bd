// Starts nats-servers with the files in deploy/nats. Only the listen addresses are changed.

import { readFileSync } from "node:fs";
import path from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { gather } from "../../src/commands/gather.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";
import { commandWorld } from "./command-context.ts";
import { freePort } from "./free-port.ts";
import { startNatsServer, type TestNatsServer } from "./nats-server.ts";

const folder = path.resolve(import.meta.dirname, "../../deploy/nats");
const token = "layout-token";

interface LayoutNode {
  readonly file: "single.conf" | "cluster.conf" | "hub.conf" | "leaf.conf";
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Maps a port in the file to the port that is used. It is needed if other nodes must know the
   * port. By default, a free port is used.
   */
  readonly ports?: Readonly<Record<number, number>>;
  readonly binary?: string | undefined;
}

function onLoopback(text: string, ports: Readonly<Record<number, number>>): string {
  return text.replaceAll(
    /^( *)(listen|http): [\d.]+:(\d+)$/gm,
    (_, indent: string, key: string, port: string) => {
      const own = port === "4222" ? "$PORT" : String(ports[Number(port)] ?? -1);
      return `${indent}${key}: "127.0.0.1:${own}"`;
    },
  );
}

export async function startNode({
  file,
  env = {},
  ports = {},
  binary,
}: LayoutNode): Promise<TestNatsServer> {
  return await startNatsServer({
    config: onLoopback(readFileSync(path.join(folder, file), "utf8"), ports),
    env: { NATS_TOKEN: token, NATS_STORE_BYTES_MAX: "2GB", ...env },
    token,
    ...(binary === undefined ? {} : { binary }),
  });
}

export async function syncsAlways(server: TestNatsServer): Promise<boolean> {
  const [, address = ""] = /Starting http monitor on (\S+)/.exec(server.log()) ?? [];
  const answer = (await (await fetch(`http://${address}/varz`)).json()) as {
    jetstream: { config: { sync_always?: boolean } };
  };
  return answer.jetstream.config.sync_always === true;
}

export async function startCluster(
  binaries: readonly (string | undefined)[] = [],
): Promise<TestNatsServer[]> {
  const ports = [await freePort(), await freePort(), await freePort()];
  const user = { NATS_ROUTE_USER: "route", NATS_ROUTE_PASSWORD: "route-password" };
  const routes = ports.map((port, at) => [
    `NATS_ROUTES_${at + 1}`,
    `nats://route:route-password@127.0.0.1:${port}`,
  ]);
  const started = ports.map((port, at) => {
    const env = { NATS_NAME: `nats-${at + 1}`, ...user, ...Object.fromEntries(routes) };
    const binary = binaries[at];
    return startNode({ file: "cluster.conf", env, ports: { 6222: port }, binary });
  });
  return await Promise.all(started);
}

interface Hub {
  readonly server: TestNatsServer;
  gather(...leaves: string[]): Promise<string>;
  /**
   * Removes the sources of the hub and adds them again. Without this, a hub tries an absent leaf
   * node again only 40 s after a restart.
   */
  askAgain(...leaves: string[]): Promise<void>;
  withClient<T>(action: (connection: NatsConnection) => Promise<T>): Promise<T>;
  leaf(name: string): Promise<TestNatsServer>;
}

export async function startHub(): Promise<Hub> {
  const leafPort = await freePort();
  const access = { NATS_LEAF_USER: "leaf", NATS_LEAF_PASSWORD: "leaf-password" };
  const server = await startNode({ file: "hub.conf", env: access, ports: { 7422: leafPort } });
  const NATS_HUB_URL = `nats-leaf://leaf:leaf-password@127.0.0.1:${leafPort}`;
  async function gatherHere(...leaves: string[]): Promise<string> {
    const result = readConfig(
      {
        PENSTOCK_NATS_URL: server.url,
        PENSTOCK_NATS_TOKEN: token,
        PENSTOCK_STREAM_BYTES_MAX: "268435456",
      },
      {},
    );
    if (!result.ok) throw new Error(`read test settings: ${result.faults.join("; ")}`);
    const { context, said } = commandWorld();
    await gather(result.config, leaves, context);
    return said.out;
  }
  async function withClient<T>(action: (connection: NatsConnection) => Promise<T>): Promise<T> {
    const connection = await connect({ servers: server.url, token });
    try {
      return await action(connection);
    } finally {
      await connection.close();
    }
  }
  async function askAgain(...names: string[]): Promise<void> {
    await withClient(async (connection) => {
      const manager = await jetstreamManager(connection);
      for (const stream of ["PENSTOCK_LIVE_0", "PENSTOCK_HISTORICAL_0", "KV_penstock_usage"]) {
        await manager.streams.update(stream, { sources: [] });
      }
    });
    await gatherHere(...names);
  }
  return {
    server,
    gather: gatherHere,
    askAgain,
    withClient,
    leaf: (name) => startNode({ file: "leaf.conf", env: { NATS_NAME: name, NATS_HUB_URL } }),
  };
}
