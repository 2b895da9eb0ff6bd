import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 20 };

describe("a restart of NATS", () => {
  test("keeps the known projects and applies later changes", async () => {
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
});
