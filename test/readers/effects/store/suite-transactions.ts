import { expect, test } from "vitest";
import { StoreError } from "../../../../src/platform/base/store-error.ts";
import { FencedError } from "../../../../src/readers/effects/store/port.ts";
import {
  all,
  commitOf,
  groupRow,
  linkRow,
  mergedRow,
  page,
  personRow,
  positionRow,
  project,
  rejectedRow,
  wholeYear,
} from "./row-kit.ts";
import type { StoreRig } from "./store-rig.ts";

export function transactionTests(now: { readonly rig: StoreRig }): void {
  test("numbers commits from 0", async () => {
    expect(await now.rig.store.lastCommit()).toBe(0);
    await now.rig.store.commit(commitOf(0, {}));
    await now.rig.store.commit(commitOf(1, {}));
    expect(await now.rig.store.lastCommit()).toBe(2);
  });

  test("rejects a commit if another writer committed before it", async () => {
    await now.rig.store.commit(commitOf(0, { members: [personRow("ann")] }));
    const late = now.rig.store.commit(commitOf(0, { members: [personRow("bob")] }));
    await expect(late).rejects.toBeInstanceOf(FencedError);
    expect(await now.rig.store.members(project, ["ann", "bob"])).toEqual([personRow("ann")]);
    expect(await now.rig.store.lastCommit()).toBe(1);
  });

  test("stores a commit in several pieces completely or not at all", async () => {
    const { store } = now.rig;
    const members = Array.from({ length: 4_500 }, (_, n) => personRow(`id-${n}`));
    const broken = rejectedRow(1, { detail: null as never });
    const failing = store.commit(commitOf(0, { members, rejected: [broken] }));
    await expect(failing).rejects.toThrow(StoreError);
    expect(await store.lastCommit()).toBe(0);
    expect(await store.members(project, ["id-0", "id-4499"])).toEqual([]);
    await store.commit(commitOf(0, { members, positions: [positionRow(1)] }));
    expect((await store.reader.totals()).persons).toBe(4_500);
    expect(await store.members(project, ["id-4499"])).toEqual([members[4_499]]);
    expect(await store.positions()).toEqual([positionRow(1)]);
  });

  test("returns committed rows while a commit in parts ends", async () => {
    const { store } = now.rig;
    const [early, late] = [personRow("early"), personRow("late")];
    const names = { projectId: project, type: "company", key: "acme" };
    expect(await store.members(project, ["early"])).toEqual([]);
    await store.positions();
    const part = { number: 1, isPart: true, groups: [groupRow("acme")], members: [early] };
    await store.commit(commitOf(0, part));
    const more = Array.from({ length: 4_500 }, (_, n) => personRow(`id-${n}`));
    const members = [mergedRow("early", "late"), late, ...more];
    const groupTypes = [{ projectId: project, type: "company" }];
    const committed = store.commit(commitOf(0, { number: 1, members, groupTypes }));
    const found = await Promise.all([
      store.members(project, ["early"]),
      store.groups([names]),
      store.groupTypes([project]),
      committed,
    ]);
    expect(found[0].map(({ distinctId }) => distinctId)).toEqual(["early", "late"]);
    expect(found[1]).toEqual([groupRow("acme")]);
    expect(found[2].map(({ type }) => type)).toEqual(["company"]);
  });

  test("accepts a commit only after the predecessor that it names", async () => {
    await now.rig.store.commit(commitOf(0, { number: 2 ** 47 }));
    expect(await now.rig.store.lastCommit()).toBe(2 ** 47);
    const counted = now.rig.store.commit(commitOf(1, { members: [personRow("bob")] }));
    await expect(counted).rejects.toBeInstanceOf(FencedError);
    await now.rig.store.commit(commitOf(2 ** 47, { members: [personRow("ann")] }));
    expect(await now.rig.store.members(project, ["ann", "bob"])).toEqual([personRow("ann")]);
  });

  test("rejects a second writer until the first has closed", async () => {
    const second = now.rig.another();
    await expect(second.open()).rejects.toBeInstanceOf(StoreError);
    await expect(second.open()).rejects.toThrow("another `penstock effects`");
    expect(await now.rig.store.holdsLock()).toBe(true);
    await now.rig.store.commit(commitOf(0, { members: [personRow("ann")] }));
    await now.rig.store.close();
    await second.open();
    expect(await second.lastCommit()).toBe(1);
    expect(await second.members(project, ["ann"])).toEqual([personRow("ann")]);
  });

  test("shows a reader whether there is a writer", async () => {
    const { store } = now.rig;
    expect(await store.reader.hasWriter()).toBe(true);
    await store.commit(commitOf(0, {}));
    const { reader: other } = now.rig.another();
    expect(await other.hasWriter()).toBe(true);
    await store.close();
    await expect.poll(() => other.hasWriter()).toBe(false);
    await now.rig.another().open();
    expect(await other.hasWriter()).toBe(true);
  });

  test("stores nothing of a commit that fails in the middle", async () => {
    const usage = {
      projectId: project,
      day: "2026-11-22",
      lane: "live",
      class: "identified",
    } as const;
    const good = commitOf(0, {
      positions: [positionRow(5)],
      members: [personRow("ann")],
      groups: [groupRow("acme")],
      usage: [{ ...usage, events: 3, duplicates: 0 }],
      rejected: [rejectedRow(1)],
    });
    const json = null as unknown as string;
    const bad = { ...good, outbox: [{ messageId: "m", subject: "s", json }] };
    await expect(now.rig.store.commit(bad)).rejects.toThrow();
    expect(await now.rig.store.lastCommit()).toBe(0);
    expect(await all(now.rig.store.reader.dump())).toEqual([]);
    expect(await now.rig.store.positions()).toEqual([]);
    expect((await now.rig.store.reader.totals()).persons).toBe(0);
    await now.rig.store.commit(good);
    expect(await now.rig.store.positions()).toEqual([positionRow(5)]);
    expect(await now.rig.store.reader.usage(project, wholeYear)).toHaveLength(1);
  });

  test("shows the parts of an incomplete commit only to the writer", async () => {
    const { store } = now.rig;
    await store.commit(commitOf(0, { members: [personRow("ann")] }));
    const groupTypes = [{ projectId: project, type: "company" }];
    const isPart = true;
    await store.commit(commitOf(1, { isPart, members: [mergedRow("ann", "bob")] }));
    const members = [personRow("bob", { idsTotal: 2 })];
    await store.commit(commitOf(1, { isPart, members, groups: [groupRow("acme")], groupTypes }));
    const found = await store.members(project, ["ann"]);
    expect(found.map(({ distinctId }) => distinctId).sort()).toEqual(["ann", "bob"]);
    const { type, key } = groupRow("acme");
    expect(await store.groups([{ projectId: project, type, key }])).toEqual([groupRow("acme")]);
    expect(await store.groupTypes([project])).toEqual(groupTypes);
    await store.published(["m"]);
    expect(await store.outbox(10, 0)).toEqual([]);
    expect(await store.reader.personByDistinctId(project, "bob")).toBeUndefined();
    await store.commit(commitOf(1, { positions: [positionRow(5)] }));
    expect(await store.reader.personByDistinctId(project, "bob")).toBeDefined();
    expect([await store.lastCommit(), await store.positions()]).toEqual([2, [positionRow(5)]]);
  });

  test("stores no parts of a commit that does not complete", async () => {
    const { store } = now.rig;
    const part = (number: number, id: string) =>
      store.commit(commitOf(0, { number, isPart: true, members: [personRow(id)] }));
    await part(7, "ann");
    expect(await store.lastCommit()).toBe(0);
    expect(await store.members(project, ["ann"])).toEqual([]);
    await part(8, "ann");
    await store.commit(commitOf(0, { number: 9, members: [personRow("bob")] }));
    const late = store.commit(commitOf(0, { number: 8, members: [personRow("carl")] }));
    await expect(late).rejects.toBeInstanceOf(FencedError);
    await store.commit(commitOf(9, { number: 10, isPart: true, members: [personRow("dora")] }));
    const json = null as unknown as string;
    const bad = commitOf(9, { number: 10, outbox: [{ messageId: "m", subject: "s", json }] });
    await expect(store.commit(bad)).rejects.toThrow();
    const found = await store.members(project, ["ann", "bob", "carl", "dora"]);
    expect(found).toEqual([personRow("bob")]);
    const reopened = now.rig.another();
    await store.commit(commitOf(9, { number: 11, isPart: true, members: [personRow("eve")] }));
    await store.close();
    await reopened.open();
    expect(await reopened.lastCommit()).toBe(9);
    expect(await reopened.members(project, ["eve"])).toEqual([]);
  });

  test("looks up rows at one point in time during a commit", async () => {
    await now.rig.store.commit(commitOf(0, { members: [personRow("id-0")] }));
    for (let n = 1; n <= 20; n++) {
      const members = [
        mergedRow(`id-${n - 1}`, `id-${n}`),
        personRow(`id-${n}`, { idsTotal: n + 1 }),
      ];
      const committed = now.rig.store.commit(commitOf(n, { members }));
      const rows = await now.rig.store.members(project, ["id-0"]);
      expect([n, n + 1]).toContain(rows.length);
      const [person, ...others] = rows.filter((row) => row.person !== undefined);
      expect([person?.distinctId, others]).toEqual([`id-${rows.length - 1}`, []]);
      await committed;
      expect(await now.rig.store.members(project, ["id-0"])).toHaveLength(n + 1);
    }
  });

  test("never shows a reader half of a merge", async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `id-${n}`);
    await now.rig.store.commit(commitOf(0, { members: ids.map((id, n) => personRow(id, { n })) }));
    let done = false;
    async function merge(): Promise<void> {
      for (let n = 1; n < ids.length; n++) {
        const survivor = personRow("id-0", { n: 0, idsTotal: n + 1, version: n + 1 });
        const members = [mergedRow(ids[n]!, "id-0", { n }), survivor];
        await now.rig.store.commit(commitOf(n, { members, links: [linkRow(n, ids[n]!, "id-0")] }));
      }
      done = true;
    }
    const merged = merge();
    let seen = 0;
    while (!done || seen === 0) {
      const { results } = await now.rig.store.reader.persons(project, page);
      const shown = results.flatMap(({ distinctIds }) => distinctIds);
      expect(shown.sort()).toEqual([...ids].sort());
      const person = await now.rig.store.reader.personByDistinctId(project, "id-7");
      expect(person?.distinctIds).toHaveLength(person?.distinctIdsTotal ?? 0);
      expect(person?.distinctIds).toContain("id-7");
      seen++;
    }
    await merged;
    expect((await now.rig.store.reader.totals()).persons).toBe(1);
  });
}
