import { expect, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();

test("creating the registry with replicas on a single server fails with the name of the setting", async () => {
  const adding = addProject(rig.connection, { ...newPlace(), replicas: 3, id: "shop" });
  await expect(adding).rejects.toThrow(/: replicas > 1 .*: PENSTOCK_REPLICAS=3 needs a cluster/);
});
