import { describe, expect, test } from "vitest";
import { openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import {
  addProject,
  retireKeys,
  rotateKey,
  setEnabled,
} from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 1_000, interval: 10 };

describe("the registry", () => {
  test("applies added, rotated, disabled and removed projects within a second", async () => {
    const place = newPlace();
    const registry = await registryOn(rig, place);
    expect(registry.refusalOf("phc_nobody")).toBeUndefined();
    expect(registry.projectsKnown).toBe(0);
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_one" });
    await expect.poll(() => registry.byKey("phc_one")?.id, soon).toBe("shop");
    const both = await rotateKey(rig.connection, { ...place, id: "shop", keepOld: true });
    await expect.poll(() => registry.byKey(both.keys[1] ?? "")?.id, soon).toBe("shop");
    expect(registry.byKey("phc_one")?.id).toBe("shop");
    await retireKeys(rig.connection, { ...place, id: "shop" });
    await expect.poll(() => registry.byKey("phc_one"), soon).toBeUndefined();
    expect(registry.byKey(both.keys[1] ?? "")?.id).toBe("shop");
    const last = await rotateKey(rig.connection, { ...place, id: "shop" });
    await expect.poll(() => registry.byKey(both.keys[1] ?? ""), soon).toBeUndefined();
    expect(last.keys).toHaveLength(1);
    await setEnabled(rig.connection, { ...place, id: "shop", enabled: false });
    await expect.poll(() => registry.byKey(last.keys[0] ?? "")?.enabled, soon).toBe(false);
    expect(registry.projectsKnown).toBe(1);
    await (await openBucket(rig.connection, place)).delete("shop");
    await expect.poll(() => registry.projectsKnown, soon).toBe(0);
    expect(registry.byKey(last.keys[0] ?? "")).toBeUndefined();
    const audit = registry.lines.filter(({ message }) => message === "audit: project changed");
    expect(audit.map(({ fields }) => fields)).toMatchObject(
      [["added"], ["keys"], ["keys"], ["keys"], ["disabled"], ["removed"]].map((changed) => ({
        project: "shop",
        changed,
      })),
    );
    expect(JSON.stringify(audit)).not.toContain("phc_");
  });

  test("has all existing projects once it is open", async () => {
    const place = newPlace();
    for (const id of ["a", "b", "c"])
      await addProject(rig.connection, { ...place, id, key: `phc_${id}` });
    await (await openBucket(rig.connection, place)).delete("b");
    const registry = await registryOn(rig, place);
    expect(["a", "b", "c"].map((id) => registry.byKey(`phc_${id}`)?.id)).toEqual([
      "a",
      undefined,
      "c",
    ]);
  });
});
