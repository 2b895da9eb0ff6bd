import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test, vi } from "vitest";
import { readFrames, startTestGateway, until } from "../kit/gateway.ts";
import { startCluster, syncsAlways } from "../kit/nats-layouts.ts";

const nodes = await startCluster();
const urls = nodes.map(({ url }) => url).join(",");
const gateway = await startTestGateway({
  server: nodes[0]!,
  env: { PENSTOCK_NATS_URL: urls, PENSTOCK_REPLICAS: "3" },
});
afterAll(async () => {
  await gateway.stop();
  for (const node of nodes) await node.remove();
});

test("a gateway with three replicas continues if one node is lost", async () => {
  const project = await gateway.project();
  const post = async (event: string) =>
    (await gateway.post("/capture/", { api_key: project.key, event, distinct_id: "user" })).status;
  expect(await post("before")).toBe(200);
  expect(await Promise.all(nodes.map(syncsAlways))).toEqual([true, true, true]);
  await nodes[1]!.stop();
  // A stream whose leader has stopped elects a new leader. Until then, the gateway asks clients to
  // retry.
  await until(async () => (await post("after")) === 200, 20_000);

  const connection = await connect({ servers: nodes[2]!.url, token: nodes[2]!.token ?? "" });
  // The reader's consumer may be on the missing node until the other nodes detect the loss.
  const frames = await vi.waitFor(() => readFrames(connection, `penstock.live.*.${project.id}`), {
    timeout: 30_000,
    interval: 200,
  });
  await connection.close();
  const events = frames.flatMap(({ events }) => events.map(({ event }) => event));
  expect(events[0]).toBe("before");
  expect(events.at(-1)).toBe("after");
});
