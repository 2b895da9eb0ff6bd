// A restored older copy continues its own revision numbers, so the same revision may have different
// content.

import { cpSync, rmSync } from "node:fs";
import path from "node:path";
import { Kvm } from "@nats-io/kv";
import { describe, expect, test } from "vitest";
import { bucketName } from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject, rotateKey } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 20 };

async function restore(copy: string): Promise<void> {
  const { server } = rig;
  await server.stop();
  rmSync(server.storeDir, { recursive: true });
  cpSync(copy, server.storeDir, { recursive: true });
  await server.restart();
}

describe("after the registry's store was restored from a copy", () => {
  test("a project deleted after the copy stays deleted", async () => {
    const { server, connection } = rig;
    const place = newPlace();
    const copy = path.join(server.storeDir, "..", "copy-with-all");
    await addProject(connection, { ...place, id: "shop", key: "phc_shop" });
    await addProject(connection, { ...place, id: "gone", key: "phc_gone" });
    const bucket = await new Kvm(connection).open(bucketName(place.prefix));
    const registry = await registryOn(rig, place, 50);
    await server.stop();
    cpSync(server.storeDir, copy, { recursive: true });
    await server.restart();
    await expect.poll(() => connection.rtt().catch(() => undefined), soon).toBeDefined();
    await bucket.delete("gone");
    await expect.poll(() => registry.byKey("phc_gone"), soon).toBeUndefined();

    await restore(copy);
    await expect
      .poll(() => registry.fault, soon)
      .toContain("it ends at entry 2, but entry 3 was read earlier");
    expect(registry.byKey("phc_gone")).toBeUndefined();
    expect(registry.refusalOf("phc_gone")).toContain("registry");
    await addProject(connection, { ...place, id: "new", key: "phc_new" });
    await expect.poll(() => registry.byKey("phc_new")?.id, soon).toBe("new");
    expect(registry.byKey("phc_gone")).toBeUndefined();
    expect(registry.refusalOf("phc_gone")).toContain("registry");
    expect(registry.fault).toContain("it contains deleted projects (gone)");

    await bucket.delete("gone");
    await expect.poll(() => registry.fault, soon).toBeUndefined();
    expect(registry.byKey("phc_gone")).toBeUndefined();
    await addProject(connection, { ...place, id: "gone", key: "phc_gone" });
    await expect.poll(() => registry.byKey("phc_gone")?.id, soon).toBe("gone");
    expect(registry.fault).toBeUndefined();
  });

  test("a key created after the restore is valid", async () => {
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
    await expect
      .poll(() => registry.fault, soon)
      .toContain("it ends at entry 1, but entry 2 was read earlier");
    await rotateKey(connection, { ...place, id: "shop", key: "phc_third" });
    await expect.poll(() => registry.byKey("phc_third")?.id, soon).toBe("shop");
    expect(registry.byKey("phc_second")).toBeUndefined();
    await expect.poll(() => registry.fault, soon).toBeUndefined();
  });
});
