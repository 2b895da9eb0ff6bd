// A watch dies with the node of a cluster that served it, and the connection to another node tells
// nobody.

import { jetstreamManager } from "@nats-io/jetstream";
import { expect, onTestFinished, test } from "vitest";
import { bucketName } from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { openRegistry } from "../../../../src/gateway/projects/registry/registry.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();

test("a lost watch is noticed within seconds: with the settings of a gateway, a project that a lost watch has missed is known a few seconds later", async () => {
  const place = newPlace();
  await addProject(rig.connection, { ...place, id: "first", key: "phc_first" });
  const { connection } = rig;
  const registry = await openRegistry({
    connection,
    ...place,
    log: { info: () => {}, warn: () => {}, error: () => {} },
  });
  onTestFinished(() => registry.close());
  const manager = await jetstreamManager(connection);
  const stream = `KV_${bucketName(place.prefix)}`;
  for await (const consumer of manager.consumers.list(stream))
    await manager.consumers.delete(stream, consumer.name);
  await addProject(connection, { ...place, id: "second", key: "phc_second" });
  await expect
    .poll(() => registry.byKey("phc_second")?.id, { timeout: 30_000, interval: 20 })
    .toBe("second");
});
