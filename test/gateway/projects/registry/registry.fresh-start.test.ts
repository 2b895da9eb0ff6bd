// At its start, a gateway can compare the registry only with the streams.

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import {
  bucketName,
  openBucket,
  projectValue,
} from "../../../../src/gateway/projects/registry/bucket.ts";
import {
  addProject,
  declareComplete,
  ensureDemoProject,
} from "../../../../src/gateway/projects/registry/commands.ts";
import { storedEvents } from "../../../../src/gateway/projects/registry/loss-mark.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 20 };
type Place = ReturnType<typeof newPlace>;
type Registry = Awaited<ReturnType<typeof registryOn>>;

const streamOf = ({ prefix }: Place): string => `KV_${bucketName(prefix)}`;
const streams = async () => (await jetstreamManager(rig.connection)).streams;
const add = (place: Place, ...ids: string[]) =>
  Promise.all(ids.map((id) => addProject(rig.connection, { ...place, id, key: `phc_${id}` })));

async function storeEvents({ prefix }: Place, ...ids: string[]): Promise<void> {
  const manager = await jetstreamManager(rig.connection);
  for (const lane of ["live", "historical"])
    for (const partition of [0, 1])
      await manager.streams.add({
        name: `${prefix}_${lane}_${partition}`.toUpperCase(),
        subjects: [`${prefix}.${lane}.${partition}.*`],
      });
  const js = jetstream(rig.connection);
  for (const [index, id] of ids.entries()) {
    await js.publish(
      `${prefix}.${index % 2 === 0 ? "live" : "historical"}.${index % 2}.${id}`,
      "{}\n",
    );
  }
  await js.publish(`${prefix}.live.0.~`, "{}\n");
}

const fresh = (place: Place): Promise<Registry> =>
  registryOn(rig, place, 50, { storedEvents: () => storedEvents(rig.connection, place.prefix) });

function expectDoubt(registry: Registry, fault: string): void {
  expect(registry.fault).toContain(fault);
  expect(registry.refusalOf("phc_nobody")).toContain("registry");
  expect(
    registry.lines.filter(({ message }) => message.includes("registry: inconsistent")),
  ).toHaveLength(1);
}

describe("a registry read at the start", () => {
  test("is compared with the project ids in all streams of the prefix", async () => {
    const place = newPlace();
    expect(await storedEvents(rig.connection, place.prefix)).toEqual({
      any: false,
      projectIds: new Set(),
    });
    await storeEvents(place, "shop", "blog", "shop");
    await storeEvents(newPlace(), "other");
    expect(await storedEvents(rig.connection, place.prefix)).toEqual({
      any: true,
      projectIds: new Set(["shop", "blog"]),
    });
  });

  test("is complete if every project with events has an entry or marker", async () => {
    const place = newPlace();
    await add(place, "shop", "blog");
    await storeEvents(place, "shop", "blog");
    await (await openBucket(rig.connection, place)).delete("blog");
    const registry = await fresh(place);
    expect(registry.fault).toBeUndefined();
    expect(registry.refusalOf("phc_blog")).toBeUndefined();
  });

  test("is incomplete if its bucket was recreated", async () => {
    const place = newPlace();
    await add(place, "shop", "blog", "old");
    await storeEvents(place, "shop", "blog", "old");
    await (await streams()).delete(streamOf(place));
    await add(place, "shop");
    const registry = await fresh(place);
    expectDoubt(registry, "it lacks 2 projects (");
    expect(registry.fault).toMatch(/\((blog, old|old, blog)\)/);
    expect(registry.byKey("phc_shop")?.id).toBe("shop");
    await add(place, "blog");
    await expect.poll(() => registry.fault, soon).toContain("it lacks 1 project (old)");
    expect(registry.byKey("phc_blog")?.id).toBe("blog");
    await (await openBucket(rig.connection, place)).delete("old");
    await expect.poll(() => registry.fault, soon).toContain("it has lost projects");
    await declareComplete(rig.connection, place);
    await expect.poll(() => registry.fault, soon).toBeUndefined();
    expect(registry.refusalOf("phc_old")).toBeUndefined();
  });

  test("has lost projects if its bucket was emptied without deletion markers", async () => {
    const place = newPlace();
    await add(place, "shop");
    await (await streams()).purge(streamOf(place));
    const registry = await fresh(place);
    expectDoubt(registry, "its entries are missing");
    await add(place, "shop");
    await expect.poll(() => registry.byKey("phc_shop")?.id, soon).toBe("shop");
    expectDoubt(registry, "its entries are missing");
    await declareComplete(rig.connection, place);
    await expect.poll(() => registry.fault, soon).toBeUndefined();
    expect(registry.byKey("phc_shop")?.id).toBe("shop");
  });

  test("stays incomplete when one project is added to a lost registry", async () => {
    const place = newPlace();
    await storeEvents(place);
    const waiting = await fresh(place);
    expectDoubt(
      waiting,
      "it no longer exists; restore the registry from a backup, or add every project again",
    );
    await add(place, "shop");
    await expect.poll(() => waiting.byKey("phc_shop")?.id, soon).toBe("shop");
    const later = await fresh(place);
    for (const registry of [waiting, later]) {
      expect(registry.byKey("phc_shop")?.id).toBe("shop");
      expectDoubt(registry, "it has lost projects; restore the registry from a backup");
      expect(registry.fault).toContain("then run `penstock project complete`");
      expect(registry.refusalOf("phc_blog")).toContain("registry");
    }
    await rig.server.restart();
    await add(place, "blog");
    for (const registry of [waiting, later]) {
      await expect.poll(() => registry.byKey("phc_blog")?.id, soon).toBe("blog");
      expect(registry.fault).toContain("it has lost projects");
    }
    expect(await ensureDemoProject(rig.connection, place)).toBeUndefined();
    expect(await declareComplete(rig.connection, place)).toBe(2);
    for (const registry of [waiting, later, await fresh(place)]) {
      await expect.poll(() => registry.fault, soon).toBeUndefined();
      await expect.poll(() => registry.refusalOf("phc_nobody"), soon).toBeUndefined();
    }
  });

  test("counts as lost if its entries were written by hand", async () => {
    const place = newPlace();
    await storeEvents(place);
    const bucket = await openBucket(rig.connection, place);
    const registry = await fresh(place);
    expectDoubt(registry, "it never had a project");
    const entry = { id: "shop", name: "", keys: ["phc_shop"], enabled: true };
    await bucket.put("shop", projectValue(entry));
    await expect.poll(() => registry.byKey("phc_shop")?.id, soon).toBe("shop");
    expectDoubt(registry, "it never had a project");
    expectDoubt(await fresh(place), "it has lost projects");
  });

  test("cannot be declared complete while a project with events is missing", async () => {
    const place = newPlace();
    await storeEvents(place, "shop", "blog");
    await add(place, "shop");
    const declared = (): Promise<number> => declareComplete(rig.connection, place);
    await expect(declared()).rejects.toThrow("projects with events in the streams (blog)");
    expectDoubt(await fresh(place), "it lacks 1 project (blog)");
    await (await openBucket(rig.connection, place)).delete("blog");
    expect(await declared()).toBe(1);
    expect((await fresh(place)).fault).toBeUndefined();
  });

  test("accepts its first project immediately if the streams are empty", async () => {
    const place = newPlace();
    await storeEvents(newPlace(), "other");
    const registry = await fresh(place);
    await add(place, "shop");
    await expect.poll(() => registry.byKey("phc_shop")?.id, soon).toBe("shop");
    for (const one of [registry, await fresh(place)]) {
      expect(one.fault).toBeUndefined();
      expect(one.refusalOf("phc_nobody")).toBeUndefined();
    }
  });

  test("is incomplete as soon as a purge or age limit removes entries", async () => {
    for (const lose of ["purge", "age"]) {
      const place = newPlace();
      await add(place, "shop", "blog");
      const registry = await registryOn(rig, place, 50);
      const manager = await streams();
      const { config } = await manager.info(streamOf(place));
      if (lose === "purge")
        await manager.purge(streamOf(place), { filter: `$KV.${bucketName(place.prefix)}.blog` });
      else
        await manager.update(streamOf(place), {
          ...config,
          max_age: 200_000_000,
          duplicate_window: 100_000_000,
        });
      await expect
        .poll(() => registry.fault, soon)
        .toMatch(lose === "purge" ? /lacks 1 project / : /lacks 2 projects /);
      expect(registry.byKey("phc_shop")?.id).toBe("shop");
      expect(registry.byKey("phc_blog")?.id).toBe("blog");
      expect(registry.refusalOf("phc_nobody")).toContain("registry");
    }
  });

  test("leaves unknown keys uncertain while an entry is unreadable", async () => {
    const place = newPlace();
    await add(place, "shop");
    const bucket = await openBucket(rig.connection, place);
    await bucket.put("blog", "{");
    const registry = await fresh(place);
    expect(registry.refusalOf("phc_blog")).toContain("cannot be read");
    expect(registry.warnings.join()).toContain("registry entry blog cannot be read");
    expect(registry.fault).toBeUndefined();
    await bucket.put(
      "blog",
      projectValue({ id: "blog", name: "blog", keys: ["phc_blog"], enabled: true }),
    );
    await expect.poll(() => registry.byKey("phc_blog")?.id, soon).toBe("blog");
    expect(registry.refusalOf("phc_nobody")).toBeUndefined();
    expect(registry.warnings).toEqual([]);
  });

  test("keeps a damaged entry under a project id uncertain", async () => {
    const place = newPlace();
    await add(place, "shop");
    const bucket = await openBucket(rig.connection, place);
    const value = { id: "my blog", name: "", keys: ["phc_blog"], enabled: true };
    await bucket.put("blog", projectValue(value));
    const registry = await fresh(place);
    expect(registry.refusalOf("phc_blog")).toContain("cannot be read");
    expect(registry.warnings.join()).toContain("registry entry blog cannot be read");
    await bucket.delete("blog");
    await bucket.put("my.blog", projectValue({ ...value, id: "my.blog" }));
    await add(place, "after");
    await expect.poll(() => registry.byKey("phc_after")?.id, soon).toBe("after");
    for (const one of [registry, await fresh(place)]) {
      await expect.poll(() => one.refusalOf("phc_blog"), soon).toBeUndefined();
      expect(one.warnings).toEqual([
        "registry entry my.blog has no valid project id: keys in it get 401",
      ]);
    }
    await bucket.delete("my.blog");
    await expect.poll(() => registry.warnings, soon).toEqual([]);
  });

  test("gets no demo project if it has lost projects", async () => {
    const gone = newPlace();
    await storeEvents(gone, "shop");
    expect(await ensureDemoProject(rig.connection, gone)).toBeUndefined();
    await expect((await streams()).info(streamOf(gone))).rejects.toThrow("stream not found");
    const short = newPlace();
    await storeEvents(short, "shop", "demo");
    await add(short, "shop");
    expect(await ensureDemoProject(rig.connection, short)).toBeUndefined();
    expectDoubt(await fresh(short), "it lacks 1 project (demo)");
    const purged = newPlace();
    await add(purged, "shop");
    await (await streams()).purge(streamOf(purged));
    expect(await ensureDemoProject(rig.connection, purged)).toBeUndefined();
  });
});
