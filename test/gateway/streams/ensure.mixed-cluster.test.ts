// A node of nats-server 2.10 panics on a stream with atomic batches.

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection, type ServerInfo } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StreamSettings } from "../../../src/gateway/streams/desired.ts";
import { BatchRule, Streams } from "../../../src/gateway/streams/ensure.ts";
import { connectNats, serverPlaces } from "../../../src/platform/nats/link.ts";
import { clusterVersions } from "../../../src/platform/nats/versions.ts";
import { startCluster } from "../../kit/nats-layouts.ts";
import { findNatsServer, oldestNatsServer, type TestNatsServer } from "../../kit/nats-server.ts";
import { recordingLog, streamSettings } from "../../kit/publisher-rig.ts";

const token = "layout-token";
const upgradeMsMax = 30_000;
const ofCluster = { cluster: "c", server_name: "a", version: "2.15.1" } as ServerInfo;
let nodes: TestNatsServer[];
let connection: NatsConnection;

beforeAll(async () => {
  nodes = await startCluster([undefined, undefined, oldestNatsServer()]);
  connection = await connect({ servers: nodes[0]!.url, token });
});

afterAll(async () => {
  await connection.close();
  await Promise.all(nodes.map((node) => node.remove()));
});

async function versionsKnown(): Promise<ReadonlyMap<string, string> | undefined> {
  return await clusterVersions(connection, serverPlaces(connection));
}

async function ensure(settings: StreamSettings): Promise<string> {
  const log: string[] = [];
  const access = { natsUrl: nodes[0]!.url, natsToken: token };
  const link = await connectNats({ access, log: recordingLog(log) });
  await new Streams({ link, settings, log: recordingLog(log) }).ensure();
  await link.close();
  return log.join("\n");
}

async function takes({ subjectPrefix }: StreamSettings): Promise<boolean> {
  const jsm = await jetstreamManager(connection, { checkAPI: false });
  const { config } = await jsm.streams.info(`${subjectPrefix.toUpperCase()}_LIVE_0`);
  return config.allow_atomic === true;
}

test("the gateway reads the versions of all servers of a cluster", async () => {
  await expect.poll(async () => (await versionsKnown())?.size, { timeout: upgradeMsMax }).toBe(3);
  const versions = [...((await versionsKnown()) ?? [])].toSorted();
  expect(versions.map(([name]) => name)).toEqual(["nats-1", "nats-2", "nats-3"]);
  expect(versions.map(([, version]) => version)).toEqual([
    expect.stringMatching(/^2\.15/),
    expect.stringMatching(/^2\.15/),
    expect.stringMatching(/^2\.10/),
  ]);
});

test("atomic batches stay disabled until the last node of a cluster is upgraded", async () => {
  const settings = streamSettings({ replicas: 3 });
  const log = await ensure(settings);
  expect(await takes(settings)).toBe(false);
  expect(log).toContain("atomic batches disabled");
  expect(log).toContain("nats-3");
  await ensure(settings);
  expect(await takes(settings)).toBe(false);
  await nodes[2]!.restart({ binary: findNatsServer() });
  await expect
    .poll(
      async () => {
        await ensure(settings);
        return await takes(settings);
      },
      { timeout: upgradeMsMax, interval: 1_000 },
    )
    .toBe(true);
});

test("atomic batches are enabled on a stream after all its replicas exist", async () => {
  const settings = streamSettings({ replicas: 1, atomicBatches: false });
  await ensure(settings);
  const raised = { ...settings, replicas: 3, atomicBatches: true };
  await ensure(raised);
  const jsm = await jetstreamManager(connection, { checkAPI: false });
  const { config } = await jsm.streams.info(`${settings.subjectPrefix.toUpperCase()}_LIVE_0`);
  expect(config.num_replicas).toBe(3);
  await expect
    .poll(
      async () => {
        await ensure(raised);
        return await takes(raised);
      },
      { timeout: upgradeMsMax, interval: 1_000 },
    )
    .toBe(true);
});

test("atomic batches stay disabled on a stream with an unknown member", async () => {
  const settings = { atomicBatches: true };
  const log: string[] = [];
  const rule = new BatchRule(connection, recordingLog(log));
  expect(await rule.setting(settings, {}, ["nats-1", "nats-2"])).toEqual({ allow_atomic: true });
  expect(await rule.setting(settings, {}, ["nats-1", "gone"])).toEqual({});
  expect(log.join("\n")).toContain("gone: version not known");
});

test("a gateway outside a cluster asks no other server for its version", async () => {
  const alone = { info: { version: "2.15.1" } } as Pick<NatsConnection, "info">;
  expect(await clusterVersions(alone, ["127.0.0.1:1"])).toBeUndefined();
});

test.each([
  ["without a listener", "127.0.0.1:1"],
  ["at an invalid address", "::"],
  ["without a port", "[::1"],
  ["at an invalid port", "127.0.0.1:65536"],
  ["under an unknown host name", "nowhere.invalid:4222"],
])("the version of a server %s is unknown", async (_, place) => {
  expect([...((await clusterVersions({ info: ofCluster }, [place])) ?? [])]).toEqual([
    ["a", "2.15.1"],
    [place, ""],
  ]);
});

test.each([
  ["sends single bytes forever", (socket: Socket) => drip(socket, "I")],
  ["sends an endless line", (socket: Socket) => socket.write("x".repeat(100_000))],
  ["sends JSON that is not an object", (socket: Socket) => socket.write("null\r\n")],
  ["closes the connection", (socket: Socket) => socket.destroy()],
])("the version of a server that %s is unknown", async (_, act) => {
  const odd = createServer(act).listen(0, "127.0.0.1");
  await once(odd, "listening");
  const place = `127.0.0.1:${(odd.address() as AddressInfo).port}`;
  const versions = await clusterVersions({ info: ofCluster }, [place]);
  expect(versions?.get(place)).toBe("");
  odd.close();
});

function drip(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 100);
  socket.on("error", () => {}).on("close", () => clearInterval(timer));
}
