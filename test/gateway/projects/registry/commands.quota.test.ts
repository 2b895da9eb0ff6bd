import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import {
  addProject,
  changeLimits,
  listProjects,
  rotateKey,
  setEnabled,
  setQuota,
} from "../../../../src/gateway/projects/registry/commands.ts";
import { costOf, waitMsOf } from "../../../kit/cost-of.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 10 };
const quota = { eventsPerSecond: 10, bytesPerSecond: 1e6, burstSeconds: 2, streamShare: 12.5 };

describe("a project's quota", () => {
  test("survives other changes of the project until it is removed", async () => {
    const place = newPlace();
    const bucket = await openBucket(rig.connection, place);
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_shop" });
    expect((await bucket.get("shop"))?.json()).toEqual({
      id: "shop",
      name: "shop",
      keys: ["phc_shop"],
      enabled: true,
    });
    expect((await setQuota(rig.connection, { ...place, id: "shop", quota })).quota).toEqual(quota);
    await setEnabled(rig.connection, { ...place, id: "shop", enabled: false });
    await rotateKey(rig.connection, { ...place, id: "shop", key: "phc_other" });
    expect(await listProjects(rig.connection, place)).toMatchObject([
      { keys: ["phc_other"], enabled: false, quota },
    ]);
    await setQuota(rig.connection, { ...place, id: "shop", quota: undefined });
    expect((await bucket.get("shop"))?.json()).toEqual({
      id: "shop",
      name: "shop",
      keys: ["phc_other"],
      enabled: false,
    });
  });

  test("keeps the fields of a newer version", async () => {
    const place = newPlace();
    const bucket = await openBucket(rig.connection, place);
    const entry = { id: "shop", name: "shop", keys: ["phc_shop"], enabled: true, region: "eu" };
    await bucket.put(
      "shop",
      JSON.stringify({ ...entry, limits: { events_per_second: 5, persons_per_day: 7 } }),
    );
    const { quota: read } = await setEnabled(rig.connection, {
      ...place,
      id: "shop",
      enabled: false,
    });
    expect(read).toEqual({ eventsPerSecond: 5, bytesPerSecond: undefined, burstSeconds: 10 });
    const kept = { ...entry, enabled: false, limits: { events_per_second: 5, persons_per_day: 7 } };
    expect((await bucket.get("shop"))?.json()).toEqual(kept);
    await changeLimits(rig.connection, { ...place, id: "shop", limits: { streamShare: 90 } });
    expect((await bucket.get("shop"))?.json()).toEqual({
      ...kept,
      limits: { ...kept.limits, burst_seconds: 10, stream_share: 90 },
    });
  });

  test.each([
    ["null", null],
    ["a list", []],
    ["a rate of 0", { events_per_second: 0 }],
    ["a rate below 0", { bytes_per_second: -1 }],
    ["a rate that is text", { events_per_second: "10" }],
    ["a rate that is null", { events_per_second: null }],
    ["a burst of 0", { events_per_second: 1, burst_seconds: 0 }],
    ["a share below 1", { stream_share: 0.5 }],
    ["a share above 100", { stream_share: 101 }],
    ["an infinite number", "1e999"],
  ])("is reported and ignored if it is damaged: %s", async (_, damage) => {
    const place = newPlace();
    const bucket = await openBucket(rig.connection, place);
    const text = (id: string, value: unknown) =>
      JSON.stringify({ id, name: id, keys: [`phc_${id}`], enabled: true, limits: value }).replace(
        '"1e999"',
        "1e999",
      );
    const value = damage === "1e999" ? { events_per_second: damage } : damage;
    await bucket.put("known", text("known", { events_per_second: 1, burst_seconds: 1 }));
    const registry = await registryOn(rig, place);
    await bucket.put("fresh", text("fresh", value));
    await bucket.put("known", text("known", value));
    await addProject(rig.connection, { ...place, id: "after", key: "phc_after" });
    await expect.poll(() => registry.byKey("phc_after")?.id, soon).toBe("after");
    expect(registry.byKey("phc_fresh")).toBeUndefined();
    expect(registry.byKey("phc_known")?.quota?.eventsPerSecond).toBe(1);
    const reported = registry.lines.filter(({ message }) => message.includes("ignored"));
    expect(reported.map(({ fields }) => String((fields as { fault: string }).fault))).toEqual([
      expect.stringMatching(/^limits/),
      expect.stringMatching(/^limits/),
    ]);
  });

  test("applies immediately when changed, and keeps the project's meter", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "shop", key: "phc_shop" });
    await setQuota(rig.connection, {
      ...place,
      id: "shop",
      quota: { ...quota, burstSeconds: 3_600 },
    });
    const registry = await registryOn(rig, place);
    const before = registry.byKey("phc_shop")!;
    const { eventsPerSecond = 0 } = quota;
    expect(waitMsOf(before.meter, costOf(eventsPerSecond * 3_600 * 2, 1))).toBe(0);
    await setEnabled(rig.connection, { ...place, id: "shop", enabled: false });
    await expect.poll(() => registry.byKey("phc_shop")?.enabled, soon).toBe(false);
    expect(registry.byKey("phc_shop")?.meter).toBe(before.meter);
    expect(waitMsOf(before.meter, costOf(1, 1))).toBeGreaterThan(60_000);
    await rig.server.kill();
    await rig.server.restart();
    const operator = await connect({ servers: rig.server.url });
    onTestFinished(() => operator.close());
    await addProject(operator, { ...place, id: "after", key: "phc_after" });
    await expect.poll(() => registry.byKey("phc_after")?.id, soon).toBe("after");
    expect(registry.byKey("phc_shop")?.meter).toBe(before.meter);
    await setQuota(operator, { ...place, id: "shop", quota: undefined });
    await expect.poll(() => waitMsOf(before.meter, costOf(1, 1)), soon).toBe(0);
  });
});
