import { rmSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { readFrames, startTestGateway, until } from "../kit/gateway.ts";
import { startHub } from "../kit/nats-layouts.ts";

const hub = await startHub();
const leaf = await hub.leaf("leaf-1");
const env = { PENSTOCK_HUB_DOMAIN: "hub" };
afterAll(async () => {
  for (const server of [leaf, hub.server]) await server.remove();
});

test("events stored after the loss of a leaf node's disk reach the hub", async () => {
  await hub.gather();
  const first = await startTestGateway({ server: leaf, env });
  await hub.gather("leaf-1");
  const project = await first.project();
  const eventsAtHub = async () => {
    const frames = await hub.withClient((connection) =>
      readFrames(connection, `penstock.live.*.${project.id}`),
    );
    return frames.flatMap(({ events }) => events.map(({ event }) => event));
  };
  const names = (part: string, count: number) =>
    Array.from({ length: count }, (_, at) => `${part} ${at}`);
  const before = names("before", 10);
  const after = names("after", 5);
  const post = async (gateway: typeof first, event: string) =>
    (await gateway.post("/capture/", { api_key: project.key, event, distinct_id: "user" })).status;
  for (const event of before) expect(await post(first, event)).toBe(200);
  await until(async () => (await eventsAtHub()).length === before.length);
  await first.close();

  await leaf.kill();
  rmSync(leaf.storeDir, { recursive: true });
  await leaf.restart();
  const second = await startTestGateway({ server: leaf, env });
  for (const event of after) expect(await post(second, event)).toBe(200);
  await hub.askAgain("leaf-1");
  await until(async () => (await eventsAtHub()).length >= before.length + after.length);
  expect(await eventsAtHub()).toEqual([...before, ...after]);
  await second.close();
});
