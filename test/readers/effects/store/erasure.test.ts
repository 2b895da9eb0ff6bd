import { afterAll, describe, expect, test } from "vitest";
import { ProjectActivity } from "../../../../src/readers/effects/spikes/project-activity.ts";
import { erasureAt } from "../../../../src/readers/effects/store/open.ts";
import { FencedError } from "../../../../src/readers/effects/store/port.ts";
import type { SpikeRow } from "../../../../src/readers/effects/types.ts";
import { openedStore, startDatabases } from "../../../kit/effects-databases.ts";
import { dumpOf } from "../../../kit/effects-dumps.ts";
import { commitOf, linkRow, mergedRow, personRow, rejectedRow } from "./row-kit.ts";

const databases = [await startDatabases("SQLite"), await startDatabases("PostgreSQL")];
afterAll(async () => {
  for (const one of databases) await one.remove();
});

const projectId = "demo";

function activityOf(id: string): string {
  const activity = new ProjectActivity(projectId, () => {});
  for (let events = 0; events < 2_000; events++) activity.count(1, id, 7);
  return activity.text();
}

function spikeRow(subject: string): SpikeRow {
  const rest = { peakPerMinute: 1, baseline: 0, threshold: 1, events: 1 };
  return { projectId, subject, startedAtMs: 1, endedAtMs: undefined, ...rest };
}

describe.each(databases)("the erasure of a person in $kind", (of) => {
  test("removes all data of the person", async () => {
    const place = await of.newDatabase();
    const store = await openedStore(place);
    const members = [
      personRow("ada", { projectId, idsTotal: 3 }),
      mergedRow("anon", "ada", { projectId }),
      mergedRow("older", "anon", { projectId }),
      personRow("bob", { projectId }),
      personRow("ada", { projectId: "other" }),
    ];
    const announced = (subject: string) => JSON.stringify({ project: projectId, subject });
    await store.commit(
      commitOf(0, {
        members,
        groupMembers: ["anon", "bob"].map((distinctId) => ({
          projectId,
          type: "company",
          key: "acme",
          distinctId,
          firstSeenAtMs: 1,
        })),
        links: [linkRow(1, "anon", "ada", { projectId })],
        spikes: [spikeRow("older"), spikeRow("project"), spikeRow("bob")],
        activity: [{ projectId, state: activityOf("older") }],
        rejected: [
          rejectedRow(1, { projectId, detail: 'properties of "anon"' }),
          rejectedRow(2, { projectId, detail: "none's" }),
          rejectedRow(3, { projectId, detail: "$set of an event of theirs", distinctId: "older" }),
          rejectedRow(4, { projectId: "other", detail: "of another project", distinctId: "ada" }),
        ],
        outbox: ["older", "bob"].map((subject) => ({
          messageId: subject,
          subject: `penstock.spike.${projectId}`,
          json: announced(subject),
        })),
      }),
    );
    const erasure = await erasureAt(place);
    expect(await erasure.idsOf(projectId, ["older", "unknown"])).toEqual(["ada", "anon", "older"]);
    const { remains, ...erased } = await erasure.erase(projectId, ["older", "unknown"]);
    expect(erased).toEqual({
      ids: ["ada", "anon", "older"],
      persons: 1,
      links: 1,
      groupMembers: 1,
      spikes: 1,
      rejected: 2,
      announcements: 1,
    });
    expect(remains.length).toBeGreaterThan(0);

    const late = commitOf(1, { members: [personRow("anon", { projectId })] });
    await expect(store.commit(late)).rejects.toThrow(FencedError);
    expect(await store.members(projectId, ["ada", "anon", "older"])).toEqual([]);
    expect(await store.members(projectId, ["bob"])).toHaveLength(1);
    expect(await store.members("other", ["ada"])).toHaveLength(1);
    expect(await store.reader.totals()).toMatchObject({ persons: 2 });
    const [activity] = await store.activity([projectId]);
    expect(activity?.state).toBe(activityOf("older").replace(/\[\["older",\d+,0\]\]/, "[]"));
    expect(activity?.state).not.toContain("older");
    const dump = (await dumpOf(store.reader)).filter((line) => line.includes('"demo"'));
    for (const id of ["ada", "anon", "older"]) expect(dump.join()).not.toContain(`"${id}"`);

    const after = await store.lastCommit();
    expect(after).toBeLessThan(0);
    await store.commit({ ...late, after });
    const person = await store.reader.personByDistinctId(projectId, "anon");
    expect(person?.distinctIds).toEqual(["anon"]);
    expect(await store.reader.personByDistinctId(projectId, "ada")).toBeUndefined();
    await store.close();
  });

  test("keeps the rejections of other persons", async () => {
    const ids = ["t", "%", "_", "1", "of", "e", "\\", '"', "'", "u0041", "ü"].concat(
      "😀".slice(0, 1).toWellFormed(),
      "more than 100 group types",
    );
    const others = ["t1", "at", "100%", "a_b", "11", "A", "\\\\", 'a"b', "o'neill", "müller", "😀"];
    const rejectedOf = (own: string) =>
      others.flatMap((distinctId, n) => [
        rejectedRow(n, {
          projectId: own,
          distinctId,
          detail: `more than 100 group types: ${distinctId}`,
        }),
        rejectedRow(n, { projectId: own, detail: `were changed and are taken: ${distinctId}` }),
        rejectedRow(n, {
          projectId: own,
          detail: `were changed and are taken: ${distinctId} or other`,
        }),
        rejectedRow(n, {
          projectId: own,
          detail: `$set: the value of ${JSON.stringify(distinctId)} …`,
        }),
      ]);
    const erasedOf = (own: string, id: string) => [
      rejectedRow(1, { projectId: own, distinctId: id }),
      rejectedRow(1, { projectId: own, detail: `were changed and are taken: ${id}` }),
      rejectedRow(1, { projectId: own, detail: `were changed and are taken: ${id} or other` }),
      rejectedRow(1, { projectId: own, detail: `were changed and are taken: other or ${id}` }),
    ];
    const place = await of.newDatabase();
    const store = await openedStore(place);
    const rejected = ids.flatMap((id, at) => [
      ...rejectedOf(`project-${at}`),
      ...erasedOf(`project-${at}`, id),
    ]);
    await store.commit(commitOf(0, { rejected }));
    const erasure = await erasureAt(place);
    for (const [at, id] of ids.entries()) {
      const own = `project-${at}`;
      const erased = await erasure.erase(own, [id]);
      expect([id, erased.rejected]).toEqual([id, erasedOf(own, id).length]);
      const left = await store.reader.rejected(own, 1_000);
      expect([id, left.toReversed()]).toEqual([id, rejectedOf(own)]);
    }
    await store.close();
  });

  test("subtracts the person's large properties from the project's total", async () => {
    const place = await of.newDatabase();
    const store = await openedStore(place);
    const large = (id: string, propertyBytes: number) => {
      const row = personRow(id, { projectId });
      return { ...row, person: { ...row.person!, propertyBytes } };
    };
    const members = [large("ada", 70_000), large("bob", 80_000), large("cid", 60_000)];
    const largeProperties = [{ projectId, bytes: 150_000 }];
    await store.commit(commitOf(0, { members, largeProperties }));
    await (await erasureAt(place)).erase(projectId, ["ada", "cid"]);
    expect(await store.largeProperties()).toEqual([{ projectId, bytes: 80_000 }]);
    await store.close();
  });

  test("fails and creates no files if the database does not exist", async () => {
    const place =
      of.kind === "SQLite"
        ? ({ kind: "sqlite", file: "/nowhere/none.sqlite" } as const)
        : await of.newDatabase();
    const erasure = await erasureAt(place);
    await expect(erasure.idsOf(projectId, ["ada"])).rejects.toThrow(/penstock effects/);
    await expect(erasure.erase(projectId, ["ada"])).rejects.toThrow(/penstock effects/);
  });
});
