import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { describe, expect, test } from "vitest";
import {
  bucketName,
  openBucket,
  projectValue,
} from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject, declareComplete } from "../../../../src/gateway/projects/registry/commands.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 20 };
type Registry = Awaited<ReturnType<typeof registryOn>>;

const streamOf = ({ prefix }: { prefix: string }): string => `KV_${bucketName(prefix)}`;
const streams = async () => (await jetstreamManager(rig.connection)).streams;
const entryOf = (id: string, keys = [`phc_${id}`]): string =>
  projectValue({ id, name: id, keys, enabled: true });

async function withProjects(
  ...ids: string[]
): Promise<{ place: ReturnType<typeof newPlace>; registry: Registry }> {
  const place = newPlace();
  for (const id of ids) await addProject(rig.connection, { ...place, id, key: `phc_${id}` });
  return { place, registry: await registryOn(rig, place, 50) };
}

function expectKept(registry: Registry, ...ids: string[]): void {
  for (const id of ids) expect(registry.byKey(`phc_${id}`)?.id).toBe(id);
  expect(registry.byKey("phc_nobody")).toBeUndefined();
  expect(registry.refusalOf("phc_nobody")).toContain("registry");
}

const errors = (registry: Registry): number =>
  registry.lines.filter(({ message }) => message.includes("registry: inconsistent")).length;

describe("a registry that lost projects", () => {
  test("is reported after its bucket was deleted", async () => {
    const { place, registry } = await withProjects("shop", "blog");
    expect(registry.fault).toBeUndefined();
    expect(registry.refusalOf("phc_nobody")).toBeUndefined();
    await (await streams()).delete(streamOf(place));
    await expect
      .poll(() => registry.fault, soon)
      .toContain("it no longer exists; this gateway still knows 2 projects");
    expectKept(registry, "shop", "blog");
    expect(errors(registry)).toBe(1);
    const reported = registry.lines.find(({ message }) =>
      message.includes("registry: inconsistent"),
    );
    expect(reported?.fields).toMatchObject({ missing: ["shop", "blog"] });
    await expect((await streams()).info(streamOf(place))).rejects.toThrow("stream not found");

    await addProject(rig.connection, { ...place, id: "shop", key: "phc_shop" });
    await addProject(rig.connection, { ...place, id: "new", key: "phc_new" });
    await expect.poll(() => registry.byKey("phc_new")?.id, soon).toBe("new");
    expect(registry.fault).toContain("it lacks 1 project");
    expectKept(registry, "shop", "blog");
    await addProject(rig.connection, { ...place, id: "blog", key: "phc_blog" });
    await expect.poll(() => registry.fault, soon).toBeUndefined();
    await expect.poll(() => registry.refusalOf("phc_nobody"), soon).toBeUndefined();
    expect(errors(registry)).toBe(1);
    expect(registry.lines.some(({ message }) => message.includes("consistent again"))).toBe(true);
  });

  test("keeps its known projects if its bucket is empty", async () => {
    const { place, registry } = await withProjects("shop", "blog");
    await (await streams()).delete(streamOf(place));
    const bucket = await new Kvm(rig.connection).create(bucketName(place.prefix), { history: 1 });
    await expect.poll(() => registry.fault, soon).toContain("it lacks 2 projects");
    expectKept(registry, "shop", "blog");
    await bucket.delete("shop");
    await expect.poll(() => registry.byKey("phc_shop"), soon).toBeUndefined();
    expectKept(registry, "blog");
    await bucket.purge("blog");
    await expect.poll(() => registry.projectsKnown, soon).toBe(0);
    expect(registry.fault).toBeUndefined();
    expect(registry.warnings.join()).toContain("there is no project");
  });

  test("stays uncertain while a recreated bucket is read", async () => {
    const { place, registry } = await withProjects("shop");
    await (await streams()).delete(streamOf(place));
    await expect.poll(() => registry.fault, soon).toContain("it no longer exists");
    const seen: (string | undefined)[] = [];
    const watching = setInterval(() => seen.push(registry.fault), 0);
    await new Kvm(rig.connection).create(bucketName(place.prefix), { history: 1 });
    await expect.poll(() => registry.fault, soon).toContain("it lacks 1 project");
    clearInterval(watching);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen).not.toContain(undefined);
  });

  test("is reported after a purge without markers", async () => {
    const { place, registry } = await withProjects("shop", "blog");
    await (await streams()).purge(streamOf(place));
    await rig.server.restart();
    await expect.poll(() => registry.fault, soon).toContain("it lacks 2 projects");
    expectKept(registry, "shop", "blog");
  });

  test("is reported if the server returns with an empty store", async () => {
    const { place, registry } = await withProjects("shop");
    const manager = await jetstreamManager(rig.connection);
    await manager.streams.delete(streamOf(place));
    await rig.server.restart();
    await expect.poll(() => registry.fault, soon).toContain("it no longer exists");
    expectKept(registry, "shop");
  });

  test("keeps newer entries after a rollback of the bucket", async () => {
    const { place, registry } = await withProjects("shop", "blog");
    const manager = await jetstreamManager(rig.connection);
    const bucket = await openBucket(rig.connection, place);
    await bucket.put("shop", entryOf("shop", ["phc_shop", "phc_newer"]));
    await expect.poll(() => registry.byKey("phc_newer")?.id, soon).toBe("shop");
    const { last_seq } = (await manager.streams.info(streamOf(place))).state;
    await manager.streams.deleteMessage(streamOf(place), last_seq);
    await manager.streams.purge(streamOf(place), { keep: 1 });
    await rig.server.restart();
    await expect.poll(() => registry.fault, soon).toBeDefined();
    expectKept(registry, "shop", "blog");
    expect(registry.byKey("phc_newer")?.id).toBe("shop");
    for (const id of ["shop", "blog"]) await bucket.put(id, entryOf(id));
    await expect.poll(() => registry.fault, soon).toBeUndefined();
    expect(registry.byKey("phc_newer")).toBeUndefined();
  });

  test("is reported if only the streams have projects", async () => {
    const place = newPlace();
    const withEvents = { storedEvents: async () => ({ any: true, projectIds: new Set<string>() }) };
    const registry = await registryOn(rig, place, 50, withEvents);
    expect(registry.fault).toContain("it no longer exists");
    expect(registry.refusalOf("phc_shop")).toContain("registry");
    await expect((await streams()).info(streamOf(place))).rejects.toThrow("stream not found");
    const bucket = await openBucket(rig.connection, place);
    await expect.poll(() => registry.fault, soon).toContain("it never had a project");
    await bucket.put("shop", entryOf("shop"));
    await expect.poll(() => registry.byKey("phc_shop")?.id, soon).toBe("shop");
    expect(registry.fault).toContain("it never had a project");
    await declareComplete(rig.connection, place);
    await expect.poll(() => registry.fault, soon).toBeUndefined();
    expect(registry.refusalOf("phc_nobody")).toBeUndefined();
  });

  test("is not reported at the first start", async () => {
    const registry = await registryOn(rig, newPlace(), 50);
    expect(registry.fault).toBeUndefined();
    expect(registry.refusalOf("phc_nobody")).toBeUndefined();
    expect(registry.warnings).toEqual([expect.stringContaining("every request gets 401")]);
    expect(registry.lines.some(({ message }) => message.includes("every request gets 401"))).toBe(
      true,
    );
  });
});
