import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { addProject } from "../../src/gateway/projects/registry/commands.ts";
import { startTestGateway, type TestGateway, until } from "../kit/gateway.ts";
import { startHub } from "../kit/nats-layouts.ts";

const hub = await startHub();
const leaf = await hub.leaf("leaf-1");
const env = { PENSTOCK_HUB_DOMAIN: "hub" };
const key = "phc_shop";
const unknownKey = "phc_unknown";
afterAll(async () => {
  for (const server of [leaf, hub.server]) await server.remove();
});

async function answers(gateway: TestGateway): Promise<number[]> {
  const statusOf = async (of: string) =>
    (await gateway.post("/batch/", { api_key: of, batch: [] })).status;
  return [await statusOf(key), await statusOf(unknownKey)];
}

test("a gateway at a new leaf node waits for the hub's projects", async () => {
  await hub.gather();
  const shop = { prefix: "penstock", replicas: 1, id: "shop", key };
  await hub.withClient((connection) => addProject(connection, shop));
  hub.server.freeze();
  let listens = false;
  const starting = startTestGateway({ server: leaf, env }).finally(() => {
    listens = true;
  });
  await until(async () => (await mirrorAtLeaf()) !== undefined);
  // Each query takes a round trip to the leaf, so a gateway that does not wait would listen by now.
  for (let look = 0; look < 200; look++)
    expect(await mirrorAtLeaf()).toMatchObject({ messages: 0 });
  expect(listens).toBe(false);
  hub.server.thaw();
  const gateway = await starting;
  expect(await answers(gateway)).toEqual([200, 401]);
  await gateway.close();

  await hub.server.kill();
  await leaf.restart();
  const again = await startTestGateway({ server: leaf, env });
  expect(await answers(again)).toEqual([200, 401]);
  await again.close();
});

async function mirrorAtLeaf(): Promise<{ messages: number } | undefined> {
  const connection = await connect({ servers: leaf.url, token: leaf.token ?? "" });
  try {
    return (await (await jetstreamManager(connection)).streams.info("KV_penstock_projects")).state;
  } catch {
    return undefined;
  } finally {
    await connection.close();
  }
}
