import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { openBucket } from "../../../../src/gateway/projects/registry/bucket.ts";
import {
  addProject,
  listProjects,
  removeEntry,
  rotateKey,
  setQuota,
} from "../../../../src/gateway/projects/registry/commands.ts";
import { writeEntry } from "../../../../src/gateway/projects/registry/entry-write.ts";
import { readSecret } from "../../../../src/gateway/projects/rules/stored-versions.ts";
import { applyRules, removeRules } from "../../../../src/gateway/projects/rules/versions.ts";
import { managerOf } from "../../../../src/platform/nats/api.ts";
import { RuleEffect } from "../../../../src/rules/compiled-rule.ts";
import { parseRules } from "../../../../src/rules/parse.ts";
import { startNatsServer } from "../../../kit/nats-server.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 10_000, interval: 20 };
const author = "me@here";
const dropX = "rules: [{ name: no-x, match: { event: x }, drop: true }]\n";
const dropY = "rules: [{ name: no-y, match: { event: y }, drop: true }]\n";

type Place = ReturnType<typeof newPlace>;

async function shop(place: Place, text = dropX) {
  const at = { ...place, id: "shop" };
  await addProject(rig.connection, { ...at, key: "phc_shop" });
  await applyRules(rig.connection, { ...at, text, author });
  return at;
}

const streams = async () => (await managerOf(rig.connection, { timeoutMs: 5_000 })).streams;
const rulesStream = ({ prefix }: Place) => `KV_${prefix}_rules`;

/** Writes a version's entry as another release might, and switches the project to it. */
async function forceVersion(at: Place & { id: string }, version: number, value: string) {
  const subject = `$KV.${at.prefix}_rules.${at.id}.${version}`;
  await jetstream(rig.connection).publish(subject, value);
  await writeEntry(rig.connection, at, async () => {
    const [project] = await listProjects(rig.connection, at);
    const entry = { id: at.id, name: at.id, keys: project!.keys, enabled: true, rules: version };
    const info = await (await streams()).info(`KV_${at.prefix}_projects`);
    const expect = { lastSequence: info.state.last_seq };
    return { key: at.id, value: JSON.stringify(entry), expect };
  });
}

describe("the rules of a project", () => {
  test("are in use when the registry is open, and a new version replaces them in 2 s", async () => {
    const place = newPlace();
    const at = await shop(place);
    const registry = await registryOn(rig, place, 500);
    expect(registry.byKey("phc_shop")?.rules?.rules.map(({ name }) => name)).toEqual(["no-x"]);
    const before = registry.byKey("phc_shop");
    const startMs = performance.now();
    await applyRules(rig.connection, { ...at, text: dropY, author });
    await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(2);
    expect(performance.now() - startMs).toBeLessThan(2_000);
    expect(registry.byKey("phc_shop")?.rules?.rules.map(({ name }) => name)).toEqual(["no-y"]);
    // A request in progress keeps its object.
    expect([before?.rules?.version, before?.rulesVersion]).toEqual([1, 1]);
    expect(registry.lines.map(({ fields }) => fields)).toContainEqual(
      expect.objectContaining({ project: "shop", changed: ["rules"] }),
    );
    expect(registry.lines.at(-1)).toMatchObject({
      message: "rules: in use",
      fields: { project: "shop", version: 2 },
    });
    expect([registry.rulesUnusable, registry.warnings]).toEqual([0, []]);
  });

  test("continue to count in a new version, and end with the project", async () => {
    const place = newPlace();
    const at = await shop(place);
    const registry = await registryOn(rig, place);
    const events = () =>
      registry.ruleCounts.ruleSamples.map(({ labels, value }) => [labels["rule"], value]);
    const count = () => registry.byKey("phc_shop")!.rules!.rules[0]!.counts[RuleEffect.dropped]!++;
    count();
    await applyRules(rig.connection, { ...at, text: `# changed\n${dropX}`, author });
    await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(2);
    count();
    expect(events()).toEqual([["no-x", 2]]);
    await removeEntry(rig.connection, at);
    await expect.poll(events, soon).toEqual([]);
  });

  test("stay with the project when its keys and quota change, also with an older release", async () => {
    const place = newPlace();
    const at = await shop(place);
    const registry = await registryOn(rig, place);
    await setQuota(rig.connection, { ...at, quota: { eventsPerSecond: 5, burstSeconds: 1 } });
    await rotateKey(rig.connection, { ...at, key: "phc_new" });
    await expect.poll(() => registry.byKey("phc_new")?.rules?.version, soon).toBe(1);
    expect(registry.byKey("phc_shop")).toBeUndefined();
    expect((await listProjects(rig.connection, place))[0]).toMatchObject({ rulesVersion: 1 });
  });

  test("stay in use if a newer version cannot be read or compiled here, which is reported", async () => {
    const place = newPlace();
    const at = await shop(place);
    const registry = await registryOn(rig, place);
    await forceVersion(at, 2, JSON.stringify({ format: 2, text: "x" }));
    await expect.poll(() => registry.rulesUnusable, soon).toBe(1);
    expect(registry.byKey("phc_shop")?.rules?.version).toBe(1);
    expect(registry.warnings).toEqual([
      "version 2 of the rules of project shop is not in use: version 2 of the rules of project shop has format 2: another release of Penstock has written it; its events are handled by version 1",
    ]);
    expect(registry.lines.at(-1)?.message).toContain("rules: version 2 of the rules");
    await applyRules(rig.connection, { ...at, text: dropY, author });
    await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(3);
    expect([registry.rulesUnusable, registry.warnings]).toEqual([0, []]);
  });

  const globs = Array.from({ length: 190 }, (_, index) => `"*${index}*a*b*c*"`);
  test.each([
    ["work", `[{ name: many, match: { event: [${globs}] }, drop: true }]`],
    ["conflicts", "[{ name: all, drop: true }, { name: never, drop: true }]"],
  ])("are in use if another release judges their %s otherwise", async (_, rules) => {
    const place = newPlace();
    const text = `rules: ${rules}`;
    expect(parseRules(text)).toMatchObject({ errors: [{}] });
    await shop(place, text);
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_shop")?.rules?.readsEvents).toBe(true);
    expect(registry.warnings).toEqual([]);
  });

  test("that no release can read fail closed: the key gets a temporary error", async () => {
    const place = newPlace();
    const at = await shop(place);
    await forceVersion(at, 2, "{");
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_shop")).toBeUndefined();
    expect(registry.refusalOf("phc_shop")).toContain("The rules of the project");
    expect(registry.refusalOf("phc_unknown")).toBeUndefined();
    expect(registry.warnings[0]).toContain("is not JSON; its events get 503");
  });

  test("are loaded when a missing version or bucket appears", async () => {
    const place = newPlace();
    const at = await shop(place);
    const { data } = (await (
      await streams()
    ).getMessage(rulesStream(place), {
      last_by_subj: `$KV.${place.prefix}_rules.shop.1`,
    }))!;
    await (await streams()).purge(rulesStream(place), {
      filter: `$KV.${place.prefix}_rules.shop.1`,
    });
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_shop")).toBeUndefined();
    expect(registry.warnings[0]).toContain("the rules bucket has no such version");
    await jetstream(rig.connection).publish(`$KV.${place.prefix}_rules.shop.1`, data);
    await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(1);
    expect(registry.lines.at(-1)?.message).toBe("rules: in use");
    expect(await readSecret(rig.connection, at)).toHaveLength(32);
  });

  test("are repaired by applying the file again after their bucket was lost", async () => {
    const place = newPlace();
    const at = await shop(place);
    await (await streams()).delete(rulesStream(place));
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_shop")).toBeUndefined();
    expect(await applyRules(rig.connection, { ...at, text: dropX, author })).toMatchObject({
      version: 2,
      isNew: true,
    });
    await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(2);
  });

  test("of many projects are in use when the registry is open", async () => {
    const place = newPlace();
    const ids = Array.from({ length: 40 }, (_, index) => `p${index}`);
    for (const id of ids) {
      await addProject(rig.connection, { ...place, id, key: `phc_${id}` });
      await applyRules(rig.connection, { ...place, id, text: dropX, author });
    }
    const registry = await registryOn(rig, place);
    expect(ids.map((id) => registry.byKey(`phc_${id}`)?.rules?.version)).toEqual(ids.map(() => 1));
  });
});

test("rules stay in use while NATS is down, and a version applied later is loaded", async () => {
  const place = newPlace();
  const at = await shop(place);
  const registry = await registryOn(rig, place);
  await rig.server.kill();
  expect(registry.byKey("phc_shop")?.rules?.version).toBe(1);
  await rig.server.restart();
  const operator = await connect({ servers: rig.server.url });
  await applyRules(operator, { ...at, text: dropY, author });
  await operator.close();
  await expect
    .poll(() => registry.byKey("phc_shop")?.rules?.version, { timeout: 30_000, interval: 20 })
    .toBe(2);
});

/** Deletes the registry, and writes entries into a new one. */
async function restoreRegistry(place: Place, entries: readonly object[]): Promise<void> {
  await (await streams()).delete(`KV_${place.prefix}_projects`);
  const bucket = await openBucket(rig.connection, place);
  for (const entry of entries) await bucket.put("shop", JSON.stringify(entry));
}

describe("after the loss of the registry", () => {
  test("a project that is added again gets the newest version of its rules", async () => {
    const place = newPlace();
    const at = await shop(place);
    await applyRules(rig.connection, { ...at, text: dropY, author });
    await restoreRegistry(place, []);
    expect(await addProject(rig.connection, { ...at, key: "phc_shop" })).toMatchObject({
      rulesVersion: 2,
    });
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_shop")?.rules?.rules.map(({ name }) => name)).toEqual(["no-y"]);
    expect(await addProject(rig.connection, { ...at, id: "blog" })).toMatchObject({
      rulesVersion: undefined,
    });
  });

  test("a project whose entry lacks its version gets a temporary error until rules are applied", async () => {
    const place = newPlace();
    const at = await shop(place);
    const entry = { id: "shop", name: "shop", keys: ["phc_shop"], enabled: true };
    await restoreRegistry(place, [entry]);
    await addProject(rig.connection, { ...place, id: "blog", key: "phc_blog" });
    const registry = await registryOn(rig, place);
    expect(registry.byKey("phc_shop")).toBeUndefined();
    expect(registry.refusalOf("phc_shop")).toContain("The rules of the project");
    expect(registry.byKey("phc_blog")).toBeDefined();
    expect(registry.rulesUnusable).toBe(1);
    expect(registry.warnings[0]).toContain("its registry entry has no version");
    expect(registry.lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining("its events get 503"),
    );
    await applyRules(rig.connection, { ...at, text: "rules: []\n", author });
    await expect.poll(() => registry.byKey("phc_shop")?.rules?.version, soon).toBe(2);
    expect([registry.rulesUnusable, registry.warnings]).toEqual([0, []]);
  });

  test("a running gateway continues with the rules that it has", async () => {
    const place = newPlace();
    await shop(place);
    const registry = await registryOn(rig, place);
    const entry = { id: "shop", name: "Restored", keys: ["phc_shop"], enabled: true };
    await restoreRegistry(place, [entry]);
    await expect.poll(() => registry.byKey("phc_shop")?.name, soon).toBe("Restored");
    expect(registry.byKey("phc_shop")?.rules?.version).toBe(1);
    expect(registry.warnings[0]).toContain("its events are handled by version 1");
  });

  test("another text under the same number replaces the text in use", async () => {
    const place = newPlace();
    const at = await shop(place);
    const registry = await registryOn(rig, place);
    await (await streams()).delete(rulesStream(place));
    await restoreRegistry(place, []);
    await addProject(rig.connection, { ...at, key: "phc_shop" });
    expect(await applyRules(rig.connection, { ...at, text: dropY, author })).toMatchObject({
      version: 1,
    });
    const names = () => registry.byKey("phc_shop")?.rules?.rules.map(({ name }) => name);
    await expect.poll(names, soon).toEqual(["no-y"]);
  });
});

test("the User-Agent of requests is needed while the rules of any project read it", async () => {
  const place = newPlace();
  const at = await shop(place);
  const registry = await registryOn(rig, place);
  expect(registry.readsUserAgent).toBe(false);
  const bots = "rules: [{ name: bots, match: { bot: true }, drop: true }]\n";
  for (const [text, isNeeded] of [
    [bots, true],
    [dropY, false],
    ["privacy: { cookieless: true }\n", true],
  ] as const) {
    await applyRules(rig.connection, { ...at, text, author });
    await expect.poll(() => registry.readsUserAgent, soon).toBe(isNeeded);
  }
  await removeEntry(rig.connection, at);
  await expect.poll(() => registry.readsUserAgent, soon).toBe(false);
});

test("a project that is removed and added again has no rules", async () => {
  const place = newPlace();
  const at = await shop(place);
  const registry = await registryOn(rig, place);
  await removeEntry(rig.connection, at);
  await expect.poll(() => registry.has("shop"), soon).toBe(false);
  await removeRules(rig.connection, at);
  await addProject(rig.connection, { ...at, key: "phc_shop" });
  await expect.poll(() => registry.byKey("phc_shop")?.id, soon).toBe("shop");
  expect([registry.byKey("phc_shop")?.rules, registry.warnings]).toEqual([undefined, []]);
});

test("a gateway that may not read the rules bucket accepts projects without rules, and warns", async () => {
  const place = newPlace();
  const denied = `publish: { deny: "$JS.API.STREAM.INFO.${rulesStream(place)}" }`;
  const users = `{ user: a, password: p }, { user: g, password: p, permissions: { ${denied} } }`;
  const own = await startNatsServer({ extraConfig: `authorization { users: [${users}] }` });
  onTestFinished(() => own.remove());
  const as = async (user: string) => {
    const connection = await connect({ servers: own.url, user, pass: "p" });
    onTestFinished(() => connection.close());
    return connection;
  };
  const operator = await as("a");
  await addProject(operator, { ...place, id: "shop", key: "phc_shop" });
  await addProject(operator, { ...place, id: "blog", key: "phc_blog" });
  await applyRules(operator, { ...place, id: "blog", text: dropX, author });
  const registry = await registryOn(rig, place, 20, { connection: await as("g") });
  expect(registry.byKey("phc_shop")?.id).toBe("shop");
  expect(registry.byKey("phc_blog")).toBeUndefined();
  expect(registry.lines.map(({ message }) => message)).toContain(
    "project registry: cannot read the rules bucket",
  );
}, 30_000);
