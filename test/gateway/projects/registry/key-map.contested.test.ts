import { describe, expect, test } from "vitest";
import type { MeteredProject } from "../../../../src/gateway/projects/project.ts";
import { openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import { setEnabled, setQuota } from "../../../../src/gateway/projects/registry/commands.ts";
import { type Clash, KeyMap } from "../../../../src/gateway/projects/registry/key-map.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 10 };
const value = (id: string, keys: string[]): string =>
  JSON.stringify({ id, name: id, keys, enabled: true });

describe("a key that two projects claim", () => {
  test("belongs to neither project until one of them gives it up", async () => {
    const place = newPlace();
    const bucket = await openBucket(rig.connection, place);
    await bucket.put("z", value("z", ["phc_same", "phc_z"]));
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_same")?.id).toBe("z");
    await bucket.put("a", value("a", ["phc_same", "phc_a"]));
    await expect.poll(() => registry.byKey("phc_same"), soon).toBeUndefined();
    const reported = () =>
      registry.lines.filter(({ message }) => message.includes("have the same key"));
    for (const id of ["a", "z"]) {
      await setQuota(rig.connection, {
        ...place,
        id,
        quota: { eventsPerSecond: 9, burstSeconds: 1 },
      });
      await setEnabled(rig.connection, { ...place, id, enabled: false });
      await expect.poll(() => registry.byKey(`phc_${id}`)?.enabled, soon).toBe(false);
      expect(registry.byKey("phc_same")).toBeUndefined();
      expect(registry.refusalOf("phc_same")).toContain("More than one project");
    }
    expect(reported()).toEqual([
      { fields: { projects: ["a", "z"] }, message: expect.stringContaining("rejected") },
    ]);
    expect(registry.warnings).toEqual([
      expect.stringContaining("projects a and z have the same key"),
    ]);
    expect(registry.fault).toBeUndefined();

    await bucket.put("z", value("z", ["phc_z"]));
    await expect.poll(() => registry.byKey("phc_same")?.id, soon).toBe("a");
    expect(registry.warnings).toEqual([]);
    await bucket.put("z", value("z", ["phc_z", "phc_same"]));
    await expect.poll(() => registry.byKey("phc_same"), soon).toBeUndefined();
    expect(reported()).toHaveLength(2);
    await bucket.delete("a");
    await expect.poll(() => registry.byKey("phc_same")?.id, soon).toBe("z");
  });

  test("belongs to neither project at the first reading of the registry", async () => {
    const place = newPlace();
    const bucket = await openBucket(rig.connection, place);
    await bucket.put("b", value("b", ["phc_same"]));
    await bucket.put("a", value("a", ["phc_same", "phc_a"]));
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_same")).toBeUndefined();
    expect(registry.byKey("phc_a")?.id).toBe("a");
  });

  test("belongs to a project only if no other project claims it", () => {
    const reported = new Map<string, boolean>();
    const keys = new KeyMap(({ projects, isOver }: Clash) => {
      const pair = projects.join(" ");
      expect(reported.get(pair) ?? false).toBe(isOver);
      reported.set(pair, !isOver);
    });
    const projects = new Map<string, MeteredProject>();
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * below);
    };
    for (let step = 0; step < 3_000; step++) {
      const id = `p${random(5)}`;
      const before = projects.get(id);
      if (before !== undefined && random(4) === 0) {
        projects.delete(id);
        keys.remove(before);
      } else {
        const claimed = Array.from({ length: random(4) }, () => `k${random(6)}`);
        const project = { id, name: "", keys: claimed, enabled: true } as unknown as MeteredProject;
        projects.set(id, project);
        keys.put(project, before);
      }
      for (let key = 0; key < 6; key++) {
        const claimants = [...projects.values()].filter((project) =>
          project.keys.includes(`k${key}`),
        );
        expect(keys.get(`k${key}`)).toBe(claimants.length === 1 ? claimants[0] : undefined);
        expect(keys.isContested(`k${key}`)).toBe(claimants.length > 1);
      }
      const sharing = keys.contestedPairs.map((pair) => pair.join(" ")).sort();
      expect(sharing).toEqual(
        [...reported]
          .filter(([, isOn]) => isOn)
          .map(([pair]) => pair)
          .sort(),
      );
    }
  });
});
