import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ClusterStore, createClusterStore } from "../../faults/cluster-store.ts";
import { startTestGateway, type TestGateway } from "../../kit/gateway.ts";

const made = [
  "KV_penstock_projects",
  "KV_penstock_usage",
  "PENSTOCK_HISTORICAL_0",
  "PENSTOCK_LIVE_0",
];
let cluster: ClusterStore;
const gateways: TestGateway[] = [];

beforeAll(async () => {
  cluster = await createClusterStore({ awaitLeader: false });
});

afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await cluster?.remove();
});

async function gatewayWith(replicas: number): Promise<TestGateway> {
  const env = { PENSTOCK_NATS_URL: cluster.gatewayUrl, PENSTOCK_REPLICAS: String(replicas) };
  const gateway = await startTestGateway({ server: cluster.nodes[0]!, env });
  gateways.push(gateway);
  return gateway;
}

async function replicas(): Promise<number[]> {
  const connection = await connect({ servers: cluster.readerUrl.split(",") });
  try {
    const manager = await jetstreamManager(connection);
    const replicasOf = async (stream: string): Promise<number> =>
      (await manager.streams.info(stream)).config.num_replicas;
    return await Promise.all(made.map(replicasOf));
  } finally {
    await connection.close();
  }
}

test("a gateway waits until its cluster has a leader", async () => {
  const gateway = await gatewayWith(1);
  const project = await gateway.project();
  const answer = await gateway.post("/capture/", {
    api_key: project.key,
    event: "first",
    distinct_id: "a",
  });
  expect(answer.status).toBe(200);
});

test("a gateway raises the replicas of existing streams and buckets", async () => {
  await gateways[0]!.close();
  expect(await replicas()).toEqual([1, 1, 1, 1]);
  const gateway = await gatewayWith(3);
  const event = { event: "second", distinct_id: "a" };
  expect(
    (await gateway.post("/capture/", { api_key: (await gateway.project()).key, ...event })).status,
  ).toBe(200);
  await gateway.close();
  await expect.poll(replicas, { timeout: 30_000, interval: 100 }).toEqual([3, 3, 3, 3]);
});
