import { expect, test } from "vitest";
import { openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();

test("the registry ignores entries that are not projects", async () => {
  const place = newPlace();
  const bucket = await openBucket(rig.connection, place);
  await addProject(rig.connection, { ...place, id: "good", key: "phc_good" });
  await bucket.put("text", "not JSON phc_secret");
  await bucket.put(
    "other",
    JSON.stringify({ id: "elsewhere", name: "", keys: ["phc_secret"], enabled: true }),
  );
  await bucket.put(
    "keys",
    JSON.stringify({ id: "keys", name: "", keys: ["phc secret"], enabled: true }),
  );
  await bucket.put(
    "state",
    JSON.stringify({ id: "state", name: "", keys: ["phc_secret"], enabled: "yes" }),
  );
  const registry = await registryOn(rig, place);
  expect(registry.projectsKnown).toBe(1);
  expect(registry.byKey("phc_secret")).toBeUndefined();
  expect(registry.byKey("phc_good")?.id).toBe("good");
  expect(registry.lines.filter(({ message }) => message.includes("ignored"))).toHaveLength(4);
  expect(JSON.stringify(registry.lines)).not.toContain("secret");
  await bucket.put("good", "{");
  await addProject(rig.connection, { ...place, id: "after", key: "phc_after" });
  await expect.poll(() => registry.byKey("phc_after")?.id).toBe("after");
  expect(registry.byKey("phc_good")?.id).toBe("good");
});
