// A copy of the store from before counts its entries on from where it ended: the same revision may then say something else.

import { cpSync, rmSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { addProject, rotateKey } from "../../src/projects/commands.ts";
import { newPlace, registryOn, registryRig } from "./registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 10_000, interval: 20 };

test("a key given out after an older copy was restored is known, and the one that it takes the place of is not", async () => {
  const { server, connection } = rig;
  const place = newPlace();
  const copy = path.join(server.storeDir, "..", "copy");
  await addProject(connection, { ...place, id: "shop", key: "phc_first" });
  const registry = await registryOn(rig, place, 50);
  await server.stop();
  cpSync(server.storeDir, copy, { recursive: true });
  await server.restart();
  await rotateKey(connection, { ...place, id: "shop", key: "phc_second" });
  await expect.poll(() => registry.byKey("phc_second")?.id, soon).toBe("shop");

  await server.stop();
  rmSync(server.storeDir, { recursive: true });
  cpSync(copy, server.storeDir, { recursive: true });
  await server.restart();
  await expect.poll(() => registry.fault, soon).toContain("it ends at entry 1, and was read up to 2 before");
  await rotateKey(connection, { ...place, id: "shop", key: "phc_third" });
  await expect.poll(() => registry.byKey("phc_third")?.id, soon).toBe("shop");
  expect(registry.byKey("phc_second")).toBeUndefined();
  await expect.poll(() => registry.fault, soon).toBeUndefined();
});
