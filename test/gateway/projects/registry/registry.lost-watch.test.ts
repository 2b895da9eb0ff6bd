// Whatever becomes of NATS or of the watch, the registry catches up, deletions included, and
// answers all the while.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { bucketName, openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 20 };

describe("a lost watch is made anew", () => {
  test("a restart of NATS: what was known stays known, what changed is seen", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "stays", key: "phc_stays" });
    await addProject(rig.connection, { ...place, id: "goes", key: "phc_goes" });
    const registry = await registryOn(rig, place);
    await rig.server.kill();
    expect(registry.byKey("phc_stays")?.id).toBe("stays");
    await rig.server.restart();
    const operator = await connect({ servers: rig.server.url });
    await (await openBucket(operator, place)).delete("goes");
    await addProject(operator, { ...place, id: "comes", key: "phc_comes" });
    await operator.close();
    await expect.poll(() => registry.byKey("phc_comes")?.id, soon).toBe("comes");
    expect(registry.byKey("phc_goes")).toBeUndefined();
    expect(registry.byKey("phc_stays")?.id).toBe("stays");
    expect(registry.refusalOf("phc_nobody")).toBeUndefined();
  });

  test("a watch that the server has lost is noticed by what it missed", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "first", key: "phc_first" });
    const registry = await registryOn(rig, place, 100);
    const manager = await jetstreamManager(rig.connection);
    const stream = `KV_${bucketName(place.prefix)}`;
    for await (const consumer of manager.consumers.list(stream))
      await manager.consumers.delete(stream, consumer.name);
    await addProject(rig.connection, { ...place, id: "second", key: "phc_second" });
    await expect.poll(() => registry.byKey("phc_second")?.id, soon).toBe("second");
  });
});
