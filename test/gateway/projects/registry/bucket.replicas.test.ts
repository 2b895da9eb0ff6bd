import { expect, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();

test("creating the registry fails if a single server cannot hold its replicas", async () => {
  const adding = addProject(rig.connection, { ...newPlace(), replicas: 3, id: "shop" });
  await expect(adding).rejects.toThrow(/: replicas > 1 .*: PENSTOCK_REPLICAS=3 needs a cluster/);
});
