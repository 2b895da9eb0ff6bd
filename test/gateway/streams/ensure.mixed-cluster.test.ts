// A gateway that starts during a cluster upgrade configures no stream to take atomic batches: a
// node of nats-server 2.10 that replicates one panics, and again at each restart. Three real nodes,
// one of which is the oldest nats-server available here.

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

test("knows the versions of all servers of a cluster", async () => {
  await expect.poll(async () => (await versionsKnown())?.size, { timeout: upgradeMsMax }).toBe(3);
  const versions = [...((await versionsKnown()) ?? [])].toSorted();
  expect(versions.map(([name]) => name)).toEqual(["nats-1", "nats-2", "nats-3"]);
  expect(versions.map(([, version]) => version)).toEqual([
    expect.stringMatching(/^2\.15/),
    expect.stringMatching(/^2\.15/),
    expect.stringMatching(/^2\.10/),
  ]);
});

test("creates or configures no stream for batches until the last node is upgraded", async () => {
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

test("configures a stream whose replicas are raised once it is on all of its servers", async () => {
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

test("does not configure a stream that has an unknown member", async () => {
  const settings = { atomicBatches: true };
  const log: string[] = [];
  const rule = new BatchRule(connection, recordingLog(log));
  expect(await rule.setting(settings, {}, ["nats-1", "nats-2"])).toEqual({ allow_atomic: true });
  expect(await rule.setting(settings, {}, ["nats-1", "gone"])).toEqual({});
  expect(log.join("\n")).toContain("gone: version not known");
});

test("asks no other server if the server is in no cluster", async () => {
  const alone = { info: { version: "2.15.1" } } as Pick<NatsConnection, "info">;
  expect(await clusterVersions(alone, ["127.0.0.1:1"])).toBeUndefined();
});

test.each([
  ["where nothing listens", "127.0.0.1:1"],
  ["at what is no address", "::"],
  ["without a port", "[::1"],
  ["at a port that there is not", "127.0.0.1:65536"],
  ["under a name that there is not", "nowhere.invalid:4222"],
])("reports no version for a server %s", async (_, place) => {
  expect([...((await clusterVersions({ info: ofCluster }, [place])) ?? [])]).toEqual([
    ["a", "2.15.1"],
    [place, ""],
  ]);
});

test.each([
  ["sends one byte after the other", (socket: Socket) => drip(socket, "I")],
  ["sends no end of a line", (socket: Socket) => socket.write("x".repeat(100_000))],
  ["sends no object", (socket: Socket) => socket.write("null\r\n")],
  ["closes", (socket: Socket) => socket.destroy()],
])("does not wait for a server that %s, and reports no version", async (_, act) => {
  const odd = createServer(act).listen(0, "127.0.0.1");
  await once(odd, "listening");
  const place = `127.0.0.1:${(odd.address() as AddressInfo).port}`;
  const versions = await clusterVersions({ info: ofCluster }, [place]);
  expect(versions?.get(place)).toBe("");
  odd.close();
});

/** Continues as long as the connection is open. */
function drip(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 100);
  socket.on("error", () => {}).on("close", () => clearInterval(timer));
}
