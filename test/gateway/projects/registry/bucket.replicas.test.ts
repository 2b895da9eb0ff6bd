// A first start that asks for more copies than one server can hold says which setting asks for
// them.

import { expect, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();

test("replicas need a cluster: replicas without a cluster are refused with the setting's name", async () => {
  const adding = addProject(rig.connection, { ...newPlace(), replicas: 3, id: "shop" });
  await expect(adding).rejects.toThrow(/: replicas > 1 .*: PENSTOCK_REPLICAS=3 needs a cluster/);
});
