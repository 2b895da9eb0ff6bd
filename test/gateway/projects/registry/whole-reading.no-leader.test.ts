// Newer nats-servers answer stream info even without a leader. The answer may lack the newest
// entries.

import type { StreamInfo } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { openRegistry } from "../../../../src/gateway/projects/registry/registry.ts";
import { isFromLeader } from "../../../../src/platform/nats/api.ts";
import { leaderless, newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 20 };

describe("a stream answer without a leader", () => {
  test("removes no project", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_shop" });
    let isLeaderless = false;
    const connection = leaderless(rig, () => isLeaderless);
    const registry = await registryOn(rig, place, 20, { connection });
    expect(registry.refusalOf("phc_nobody")).toBeUndefined();
    isLeaderless = true;
    await expect.poll(() => registry.refusalOf("phc_nobody"), soon).toContain("does not answer");
    await expect
      .poll(() => registry.lines.map(({ fields }) => JSON.stringify(fields)).join(), soon)
      .toContain("no leader");
    expect(registry.byKey("phc_shop")?.id).toBe("shop");
    expect(registry.fault).toBeUndefined();
    expect(registry.warnings).toEqual([expect.stringContaining("does not answer")]);
    isLeaderless = false;
    await expect.poll(() => registry.refusalOf("phc_nobody"), soon).toBeUndefined();
    expect(registry.byKey("phc_shop")?.id).toBe("shop");
  });

  test("makes the start wait for a leader", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_shop" });
    let isLeaderless = true;
    const said: string[] = [];
    const note = (fields: object): void => void said.push(JSON.stringify(fields));
    const connection = leaderless(rig, () => isLeaderless);
    const starting = openRegistry({
      connection,
      ...place,
      log: { info: note, warn: note, error: note },
    });
    await expect.poll(() => said.join(), soon).toContain("no leader");
    isLeaderless = false;
    const registry = await starting;
    expect(registry.byKey("phc_shop")?.id).toBe("shop");
    await registry.close();
  });

  test("is recognised by its leader field", () => {
    const replicas = ["a", "b"].map((name) => ({
      name,
      current: true,
      active: 0,
      offline: false,
      lag: 0,
    }));
    const of = (cluster: object | undefined) => isFromLeader({ cluster } as unknown as StreamInfo);
    expect(of(undefined)).toBe(true);
    expect(of({ name: "c", leader: "c", replicas })).toBe(true);
    expect(of({ name: "c", leader: "c" })).toBe(true);
    expect(of({ name: "c", leader: "a", replicas })).toBe(false);
    expect(of({ name: "c", leader: "", replicas })).toBe(false);
    expect(of({ name: "c", replicas })).toBe(false);
  });
});
