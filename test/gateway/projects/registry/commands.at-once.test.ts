import { describe, expect, test } from "vitest";
import { openExistingBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import {
  addProject,
  ensureDemoProject,
  listProjects,
  newKey,
  rotateKey,
  setEnabled,
} from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();

describe("project commands", () => {
  test("store all keys that are added concurrently", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_first" });
    const rotations = Array.from({ length: 4 }, () =>
      rotateKey(rig.connection, { ...place, id: "shop", keepOld: true }),
    );
    const [switched] = await Promise.all([
      setEnabled(rig.connection, { ...place, id: "shop", enabled: false }),
      ...rotations,
    ]);
    expect(switched.enabled).toBe(false);
    const [project] = await listProjects(rig.connection, place);
    expect(new Set(project?.keys).size).toBe(5);
    expect(project?.enabled).toBe(false);
  });

  test("add a project once if two commands add it concurrently", async () => {
    const place = newPlace();
    const outcomes = await Promise.allSettled([
      addProject(rig.connection, { ...place, id: "shop" }),
      addProject(rig.connection, { ...place, id: "shop" }),
    ]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    await expect(addProject(rig.connection, { ...place, id: "shop" })).rejects.toThrow(
      "cannot add project shop: it already exists",
    );
  });

  test("assign a key that many projects claim concurrently to one project", async () => {
    const place = newPlace();
    for (const key of ["phc_first", "phc_second"]) {
      const adding = Array.from({ length: 6 }, (_, index) =>
        addProject(rig.connection, { ...place, id: `${key}-${index}`, key }),
      );
      const outcomes = await Promise.allSettled(adding);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      for (const outcome of outcomes) {
        if (outcome.status === "rejected")
          expect(outcome.reason.message).toContain("already in use by project");
      }
    }
    const [one, other] = await listProjects(rig.connection, place);
    const rotations = [one, other].map((project) =>
      rotateKey(rig.connection, {
        ...place,
        id: project?.id ?? "",
        keepOld: true,
        key: "phc_third",
      }),
    );
    expect(
      (await Promise.allSettled(rotations)).filter(({ status }) => status === "fulfilled"),
    ).toHaveLength(1);
    const projects = await listProjects(rig.connection, place);
    const keys = projects.flatMap((project) => project.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("create no bucket when they list or change a missing project", async () => {
    const place = newPlace();
    expect(await listProjects(rig.connection, place)).toEqual([]);
    await expect(rotateKey(rig.connection, { ...place, id: "shop" })).rejects.toThrow(
      "no project shop",
    );
    await expect(
      setEnabled(rig.connection, { ...place, id: "shop", enabled: true }),
    ).rejects.toThrow("no project shop");
    expect(await openExistingBucket(rig.connection, place)).toBeUndefined();
  });

  test("reject a key of another project, a malformed key and a malformed id", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_taken" });
    const add = (id: string, key: string) => addProject(rig.connection, { ...place, id, key });
    await expect(add("other", "phc_taken")).rejects.toThrow("already in use by project shop");
    for (const key of ["", "two words", "schlüssel", "x".repeat(201)]) {
      await expect(add("other", key)).rejects.toThrow("printable ASCII");
    }
    for (const id of ["", "a.b", "a b", "*", "x".repeat(65)])
      await expect(add(id, "phc_k")).rejects.toThrow("the project's id must match");
    await expect(rotateKey(rig.connection, { ...place, id: "absent" })).rejects.toThrow(
      "no project absent",
    );
    expect(await listProjects(rig.connection, place)).toHaveLength(1);
  });

  test("create the demo project once and never change it", async () => {
    const place = newPlace();
    expect((await ensureDemoProject(rig.connection, place))?.keys).toEqual(["phc_demo"]);
    const rotated = await rotateKey(rig.connection, { ...place, id: "demo" });
    expect(await ensureDemoProject(rig.connection, place)).toEqual(rotated);
  });

  test("create keys of phc_ and 43 random base62 characters", () => {
    const keys = Array.from({ length: 200 }, newKey);
    for (const key of keys) expect(key).toMatch(/^phc_[A-Za-z0-9]{43}$/);
    expect(new Set(keys).size).toBe(200);
    expect(new Set(keys.flatMap((key) => [...key.slice(4)])).size).toBe(62);
  });
});
