// The admin commands on a cluster with three replicas, while clients send events and a nats-server
// is killed.

import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { ensureStreams } from "../../../src/gateway/streams/ensure.ts";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { type ClusterStore, createClusterStore } from "../../faults/cluster-store.ts";
import { readFrames, startTestGateway } from "../../kit/gateway.ts";
import type { TestNatsServer } from "../../kit/nats-server.ts";
import { silent, temporaryFolder } from "../../kit/processes.ts";
import { type CommandRun, runCommand } from "../../kit/run-command.ts";

const live = "PENSTOCK_LIVE_0";
const againMsMax = 90_000;
const senders = 2;
const sendPauseMs = 10;

const cluster = await createClusterStore();
afterAll(() => cluster.remove());

function envOf({ gatewayUrl }: ClusterStore) {
  return {
    PENSTOCK_NATS_URL: gatewayUrl,
    PENSTOCK_REPLICAS: "3",
    PENSTOCK_STREAM_BYTES_MAX: "67108864",
    PENSTOCK_DATA_DIR: temporaryFolder(),
  };
}

/** A gateway, and clients that send events of two projects until the test ends. */
async function loaded() {
  const env = envOf(cluster);
  const server = { url: cluster.gatewayUrl, token: undefined } as unknown as TestNatsServer;
  const gateway = await startTestGateway({ server, env });
  const projects = await gateway.projects(2);
  /** The ids that were answered 200, in the order of the answers. */
  const acked = new Map(projects.map(({ id }) => [id, [] as string[]]));
  const isOver = { value: false };
  const send = async ({ id, key }: (typeof projects)[number], sender: number) => {
    for (let count = 0; !isOver.value; count++) {
      const distinctId = `${id}-${sender}-${count}`;
      const body = { api_key: key, event: "e", distinct_id: distinctId };
      const { status } = await gateway.post("/capture/", body).catch(() => ({ status: 0 }));
      if (status === 200) acked.get(id)!.push(distinctId);
      // Removed: its events are rejected from now on.
      if (status === 401) return;
      await delay(sendPauseMs);
    }
  };
  const running = Promise.all(
    projects.flatMap((project) => Array.from({ length: senders }, (_, one) => send(project, one))),
  );
  const stop = async () => {
    isOver.value = true;
    await running;
  };
  onTestFinished(async () => {
    await stop();
    await gateway.stop();
  });
  const [shop, blog] = projects.map(({ id }) => id) as [string, string];
  await expect.poll(() => acked.get(shop)!.length, { timeout: 30_000 }).toBeGreaterThan(20);
  return { env, gateway, acked, shop, blog, stop };
}

async function storedIds(project: string, servers = cluster.readerUrl): Promise<Set<string>> {
  const connection = await connect({ servers: servers.split(",") });
  try {
    const frames = await readFrames(connection, `penstock.live.*.${project}`);
    return new Set(frames.flatMap(({ events }) => events.map((one) => String(one["distinct_id"]))));
  } finally {
    await connection.close();
  }
}

/** Runs a command while the leader of the live stream is killed, and repeats it until it succeeds. */
async function whileKilled(run: () => Promise<CommandRun>): Promise<CommandRun> {
  const leader = await cluster.leaderOf(live);
  const first = run();
  await leader.kill();
  let last = await first;
  const deadline = performance.now() + againMsMax;
  while (last.fault !== undefined && performance.now() < deadline) last = await run();
  await leader.restart();
  await cluster.whole(live);
  return last;
}

test("the limits that stream set has set have as many replicas as the streams, also if these are raised later", async () => {
  const env = {
    ...envOf(cluster),
    PENSTOCK_SUBJECT_PREFIX: "grown",
    PENSTOCK_NATS_URL: cluster.readerUrl,
  };
  const connection = await connect({ servers: cluster.readerUrl.split(",") });
  onTestFinished(() => connection.close());
  const manager = await jetstreamManager(connection);
  const ensure = async (replicas: string) => {
    const result = readConfig({ ...env, PENSTOCK_REPLICAS: replicas }, {});
    if (!result.ok) throw new Error(result.faults.join("; "));
    await ensureStreams(connection, result.config, silent);
  };
  const replicasOf = async (stream: string) =>
    (await manager.streams.info(stream)).config.num_replicas;
  await ensure("1");
  const set = ["stream", "set", "live", "--max-age", "20d", "--no-effects"];
  expect((await runCommand(env, set)).fault).toBeUndefined();
  expect(await replicasOf("KV_grown_limits")).toBe(1);
  await ensure("3");
  for (const stream of ["GROWN_LIVE_0", "KV_grown_limits"])
    expect(await replicasOf(stream)).toBe(3);
}, 60_000);

describe("on a cluster under load, with the leader of the stream killed in the middle", () => {
  test("stream set applies its limits, also if it is repeated, and loses no stored event", async () => {
    const { env, acked, shop, stop } = await loaded();
    const set = () => runCommand(env, ["stream", "set", "live", "--max-age", "2d", "--no-effects"]);
    expect((await whileKilled(set)).fault).toBeUndefined();
    expect((await set()).out).toContain(`${live}: unchanged: age 2d (set)`);
    await stop();
    const show = await runCommand(env, ["stream", "show", "live", "--json"]);
    expect(JSON.parse(show.out)).toMatchObject([
      { age_max_seconds: 172_800, set_by_command: ["max_age"], replicas: 3 },
    ]);
    const stored = await storedIds(shop);
    expect(acked.get(shop)!.filter((id) => !stored.has(id))).toEqual([]);
    const back = ["stream", "set", "live", "--from-settings", "--no-effects"];
    expect((await runCommand(env, back)).fault).toBeUndefined();
  }, 240_000);

  test("stream purge removes the messages of one project, and no event of another or a later one", async () => {
    const { env, acked, shop, blog, stop } = await loaded();
    const purge = () =>
      runCommand(env, ["stream", "purge", "live", "--project", blog, "--yes", "--no-effects"]);
    const before = [...acked.get(blog)!];
    expect((await whileKilled(purge)).fault).toBeUndefined();
    const count = acked.get(blog)!.length;
    await expect
      .poll(() => acked.get(blog)!.length, { timeout: 60_000 })
      .toBeGreaterThan(count + 20);
    await stop();
    const [ofShop, ofBlog] = [await storedIds(shop), await storedIds(blog)];
    expect(acked.get(shop)!.filter((id) => !ofShop.has(id))).toEqual([]);
    expect(before.filter((id) => ofBlog.has(id))).toEqual([]);
    expect(
      acked
        .get(blog)!
        .slice(count)
        .filter((id) => !ofBlog.has(id)),
    ).toEqual([]);
    expect((await purge()).fault).toBeUndefined();
    expect((await purge()).out).toContain("nothing to remove");
  }, 240_000);

  test("project remove removes everything of the project and nothing of another", async () => {
    const { env, gateway, acked, shop, blog, stop } = await loaded();
    const remove = () => runCommand(env, ["project", "remove", blog, "--yes", "--no-effects"]);
    expect((await whileKilled(remove)).fault).toBeUndefined();
    await stop();
    const rejected = { api_key: `phc_${blog}`, event: "e", distinct_id: "u" };
    expect((await gateway.post("/capture/", rejected)).status).toBe(401);
    expect([...(await storedIds(blog))]).toEqual([]);
    const ofShop = await storedIds(shop);
    expect(acked.get(shop)!.filter((id) => !ofShop.has(id))).toEqual([]);
    const list = (await runCommand(env, ["project", "list"])).out;
    expect([list.includes(shop), list.includes(blog)]).toEqual([true, false]);
  }, 240_000);

  test("stream backup has every event that was stored before it, and stream restore brings them back", async () => {
    const { env, acked, shop, stop } = await loaded();
    const before = [...acked.get(shop)!];
    const parent = temporaryFolder();
    let runs = 0;
    let folder = "";
    const backup = () => {
      folder = path.join(parent, String(++runs));
      return runCommand(env, ["stream", "backup", folder]);
    };
    expect((await whileKilled(backup)).fault).toBeUndefined();
    await stop();
    const other = await createClusterStore();
    onTestFinished(() => other.remove());
    const there = envOf(other);
    // A killed server may leave an empty stream.
    const restore = () => runCommand(there, ["stream", "restore", folder, "--replace-empty"]);
    const first = restore();
    await other.nodes[0]!.kill();
    let last = await first;
    await other.nodes[0]!.restart();
    const faults: string[] = [];
    const deadline = performance.now() + againMsMax;
    while (last.fault !== undefined && performance.now() < deadline) {
      faults.push(last.fault);
      await delay(1_000);
      last = await restore();
    }
    expect(last.fault, faults.join("\n")).toBeUndefined();
    await Promise.all([live, "PENSTOCK_HISTORICAL_0"].map((stream) => other.whole(stream)));
    const stored = await storedIds(shop, other.readerUrl);
    expect(before.filter((id) => !stored.has(id))).toEqual([]);
    const again = await restore();
    expect([again.fault, again.audit]).toEqual([undefined, []]);
  }, 280_000);
});
