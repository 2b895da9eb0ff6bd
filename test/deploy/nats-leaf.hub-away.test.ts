import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { readUsage } from "../../src/gateway/projects/usage/usage.ts";
import {
  readFrames,
  startTestGateway,
  type TestGateway,
  type TestProject,
  until,
} from "../kit/gateway.ts";
import { startHub, syncsAlways } from "../kit/nats-layouts.ts";
import type { TestNatsServer } from "../kit/nats-server.ts";

const hub = await startHub();
const leaves: TestNatsServer[] = [];
const gateways: TestGateway[] = [];
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  for (const server of [...leaves, hub.server]) await server.remove();
});

const requestsEach = 20;
const eventsEach = 5;

async function eventsAtHub(project: TestProject, lane: string): Promise<string[]> {
  const frames = await hub.withClient((connection) =>
    readFrames(connection, `penstock.${lane}.*.${project.id}`),
  );
  return frames.flatMap(({ events }) => events.map(({ event }) => String(event)));
}

async function gatewayAt(name: string): Promise<TestGateway> {
  const server = await hub.leaf(name);
  leaves.push(server);
  const gateway = await startTestGateway({ server, env: { PENSTOCK_HUB_DOMAIN: "hub" } });
  gateways.push(gateway);
  return gateway;
}

test("a gateway at a leaf node stores events while the hub is down", async () => {
  await hub.gather();
  const first = await gatewayAt("leaf-1");
  await hub.gather("leaf-1");
  const second = await gatewayAt("leaf-2");
  expect(await hub.gather("leaf-2")).toMatch(/LIVE_0 +leaf-1[\s\S]*LIVE_0 +leaf-2/);
  const project = await first.project();
  await until(
    async () => (await second.post("/batch/", { api_key: project.key, batch: [] })).status === 200,
  );

  expect(await Promise.all([hub.server, ...leaves].map(syncsAlways))).toEqual([true, true, true]);

  const answers: number[] = [];
  const sent = { live: [] as string[], historical: [] as string[] };
  async function send(gateway: TestGateway, name: string): Promise<void> {
    const batch = Array.from({ length: eventsEach }, (_, at) => ({
      event: `${name}.${at}`,
      distinct_id: "user",
    }));
    const historical = name.startsWith("historical");
    const { status } = await gateway.post("/batch/", {
      api_key: project.key,
      batch,
      historical_migration: historical,
    });
    answers.push(status);
    sent[historical ? "historical" : "live"].push(...batch.map(({ event }) => event));
  }
  async function sendAll(part: string): Promise<void> {
    for (let request = 0; request < requestsEach; request++) {
      await send(first, `historical ${part} ${request}`);
      await Promise.all(
        gateways.map((gateway, at) => send(gateway, `live ${part} ${request} ${at}`)),
      );
    }
  }

  await sendAll("before");
  await until(async () => (await eventsAtHub(project, "live")).length > 0);
  await hub.server.kill();
  await sendAll("away");
  await hub.server.restart();
  await until(async () =>
    /Leafnode connection created[\s\S]*Leafnode connection created/.test(newestLog()),
  );
  await hub.askAgain("leaf-1", "leaf-2");
  await sendAll("after");
  expect(answers).toEqual(Array(9 * requestsEach).fill(200));

  await until(async () => (await eventsAtHub(project, "live")).length >= sent.live.length, 20_000);
  await until(
    async () => (await eventsAtHub(project, "historical")).length >= sent.historical.length,
    20_000,
  );
  expect((await eventsAtHub(project, "live")).sort()).toEqual(sent.live.sort());
  expect(await eventsAtHub(project, "historical")).toEqual(sent.historical);

  // Gateways write their last counts when they close.
  for (const gateway of gateways) await gateway.close();
  await hub.askAgain("leaf-1", "leaf-2");
  await until(
    async () => (await hub.withClient(acceptedAt)) === sent.live.length + sent.historical.length,
  );
  // Each leaf has only the counts of its own gateways.
  const atFirst = await connect({ servers: leaves[0]!.url, token: leaves[0]!.token ?? "" });
  expect(await acceptedAt(atFirst)).toBe(sent.live.length / 2 + sent.historical.length);
  await atFirst.close();
});

async function acceptedAt(connection: NatsConnection): Promise<number | undefined> {
  const usages = await readUsage(connection, {
    prefix: "penstock",
    replicas: 1,
    nowMs: Date.now(),
  });
  return usages[0]?.accepted;
}

function newestLog(): string {
  return hub.server.log().split("Starting nats-server").at(-1) ?? "";
}
