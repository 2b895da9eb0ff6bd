import { describe, expect, test } from "vitest";
import { Meters } from "../../../../src/gateway/projects/quota/meter.ts";
import { openBucket, projectValue } from "../../../../src/gateway/projects/registry/bucket.ts";
import { costOf, waitMsOf } from "../../../kit/cost-of.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 10 };

describe("the meter of a deleted project", () => {
  test("continues when the project is added again", async () => {
    const place = newPlace();
    const bucket = await openBucket(rig.connection, place);
    const quota = { eventsPerSecond: 1, burstSeconds: 3_600 };
    const value = projectValue({
      id: "shop",
      name: "Shop",
      keys: ["phc_shop"],
      enabled: true,
      quota,
    });
    await bucket.put("shop", value);
    const registry = await registryOn(rig, place);
    const counted = () =>
      [...registry.meters()].map(({ projectId, meter }) => [projectId, meter.counts.accepted]);
    const { meter } = registry.byKey("phc_shop")!;
    expect(waitMsOf(meter, costOf(7_200, 1))).toBe(0);
    meter.countStored(7_200, 0);
    await bucket.delete("shop");
    await expect.poll(() => registry.byKey("phc_shop"), soon).toBeUndefined();
    expect(counted()).toEqual([["shop", 7_200]]);
    await bucket.put("shop", value);
    await expect.poll(() => registry.byKey("phc_shop")?.id, soon).toBe("shop");
    registry.byKey("phc_shop")?.meter.countStored(1, 0);
    expect(counted()).toEqual([["shop", 7_201]]);
    expect(waitMsOf(registry.byKey("phc_shop")!.meter, costOf(1, 1))).toBeGreaterThan(60_000);
  });

  test("is retained for the last few deleted projects", () => {
    const meters = new Meters({ monotonicMs: () => 0, deletedMax: 2 });
    const ids = () => [...meters.all()].map(({ projectId }) => projectId).sort();
    for (const id of ["a", "b", "c", "d", "e"]) meters.of(id);
    meters.leave("b");
    meters.leave("a");
    expect(ids()).toEqual(["a", "b", "c", "d", "e"]);
    meters.of("b");
    meters.leave("e");
    expect(ids()).toEqual(["a", "b", "c", "d", "e"]);
    meters.leave("c");
    expect(ids()).toEqual(["b", "c", "d", "e"]);
    for (const id of ["b", "d", "missing"]) meters.leave(id);
    expect(ids()).toHaveLength(2);
  });

  test("is reported once after its eviction", () => {
    const meters = new Meters({ monotonicMs: () => 0, deletedMax: 1 });
    const first = meters.of("a");
    first.countStored(5, 0);
    meters.of("b");
    for (const id of ["a", "b"]) meters.leave(id);
    expect(meters.takeEvicted()).toEqual([{ projectId: "a", meter: first }]);
    expect(meters.takeEvicted()).toEqual([]);
    const later = meters.of("a");
    expect([later.counts.accepted, later.series === first.series]).toEqual([0, false]);
  });
});
