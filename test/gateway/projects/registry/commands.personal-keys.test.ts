import { describe, expect, test } from "vitest";
import { openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import {
  addProject,
  listProjects,
  rotateKey,
} from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();

describe("a personal or secret PostHog key", () => {
  test.each([
    ["phx_0123456789abcdef", /begins with phx_: that is a personal key .* begins with phc_/],
    ["phs_0123456789abcdef", /begins with phs_: that is a secret key .* begins with phc_/],
  ])("is rejected as a project's key without repeating its text: %s", async (key, why) => {
    const place = newPlace();
    await expect(addProject(rig.connection, { ...place, id: "shop", key })).rejects.toThrow(why);
    await expect(addProject(rig.connection, { ...place, id: "shop", key })).rejects.not.toThrow(
      "0123",
    );
    expect(await listProjects(rig.connection, place)).toEqual([]);
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_shop" });
    await expect(rotateKey(rig.connection, { ...place, id: "shop", key })).rejects.toThrow(why);
    expect(await listProjects(rig.connection, place)).toMatchObject([{ keys: ["phc_shop"] }]);
  });

  test("is accepted if the registry already contains it", async () => {
    const place = newPlace();
    const bucket = await openBucket(rig.connection, place);
    await bucket.put(
      "old",
      JSON.stringify({ id: "old", name: "old", keys: ["phx_old"], enabled: true }),
    );
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phx_old")?.id).toBe("old");
    expect(
      await rotateKey(rig.connection, { ...place, id: "old", key: "phc_new", keepOld: true }),
    ).toMatchObject({
      keys: ["phx_old", "phc_new"],
    });
  });
});
