// If the first start requests more replicas than one server can hold, the error names the setting.

import { expect, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();

test("rejects replicas without a cluster, with the setting's name", async () => {
  const adding = addProject(rig.connection, { ...newPlace(), replicas: 3, id: "shop" });
  await expect(adding).rejects.toThrow(/: replicas > 1 .*: PENSTOCK_REPLICAS=3 needs a cluster/);
});
