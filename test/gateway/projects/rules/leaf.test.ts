import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { openRegistry } from "../../../../src/gateway/projects/registry/registry.ts";
import { versionsOf } from "../../../../src/gateway/projects/rules/stored-versions.ts";
import { applyRules } from "../../../../src/gateway/projects/rules/versions.ts";
import { managerOf } from "../../../../src/platform/nats/api.ts";
import { until } from "../../../kit/gateway.ts";
import { startHub } from "../../../kit/nats-layouts.ts";
import type { TestNatsServer } from "../../../kit/nats-server.ts";

const hub = await startHub();
const leaf = await hub.leaf("leaf-1");
afterAll(async () => {
  for (const server of [leaf, hub.server]) await server.remove();
});

const place = { prefix: "penstock", replicas: 1 };
const at = { ...place, id: "shop" };
const soon = { timeout: 30_000, interval: 50 };

async function connected({ url, token }: TestNatsServer): Promise<NatsConnection> {
  const connection = await connect({ servers: url, token: token ?? "" });
  onTestFinished(() => connection.close());
  return connection;
}

test("a gateway on a leaf node uses the rules of the hub, also while the hub is away", async () => {
  const atHub = await connected(hub.server);
  await addProject(atHub, { ...at, key: "phc_shop" });
  const text = (n: number) =>
    `privacy: { ip: hash }\nrules: [{ name: r${n}, match: { event: x }, drop: true }]\n`;
  await applyRules(atHub, { ...at, text: text(1), author: "me@here" });
  const atLeaf = await connected(leaf);
  const warnings: string[] = [];
  const note = (_: object, message: string) => void warnings.push(message);
  const registry = await openRegistry({
    ...place,
    hubDomain: "hub",
    connection: atLeaf,
    pollMs: 50,
    log: { info: () => {}, warn: note, error: note },
  });
  onTestFinished(() => registry.close());
  await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(1);

  // A command at the leaf writes to the hub.
  const hubDomain = "hub";
  await applyRules(atLeaf, { ...at, hubDomain, text: text(2), author: "me@leaf" });
  expect(await versionsOf(atHub, at)).toEqual([1, 2]);
  await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(2);

  // The salts are only at the hub.
  const names = async (connection: NatsConnection) => {
    const manager = await managerOf(connection, { timeoutMs: 5_000 });
    return (await manager.streams.list().next()).map(({ config }) => config.name);
  };
  expect(await names(atHub)).toContain("KV_penstock_salts");
  const [leafNames] = [await names(atLeaf)];
  expect(leafNames).toContain("KV_penstock_rules");
  expect(leafNames).not.toContain("KV_penstock_salts");

  const stored = (one: typeof registry) =>
    one.byKey("phc_shop")?.rules?.address?.storedFor("192.0.2.7", Date.now());
  expect(stored(registry)).toMatch(/^[0-9a-f]{32}$/);

  await hub.server.kill();
  const again = await until(async () => {
    const other = await openRegistry({
      ...place,
      hubDomain,
      connection: atLeaf,
      pollMs: 50,
      log: { info: () => {}, warn: note, error: note },
    });
    onTestFinished(() => other.close());
    // A gateway that starts has no salt.
    return other.byKey("phc_shop")?.rules?.version === 2 && stored(other) === "";
  }, 60_000).then(
    () => true,
    () => false,
  );
  expect(again, warnings.join("\n")).toBe(true);
  // A running gateway has those that it has read.
  expect(stored(registry)).toMatch(/^[0-9a-f]{32}$/);
});
