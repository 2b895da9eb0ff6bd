import { expect, test } from "vitest";
import {
  all,
  commitOf,
  groupRow,
  mergedRow,
  noon,
  page,
  personRow,
  project,
  propertiesOf,
} from "./row-kit.ts";
import type { StoreRig } from "./store-rig.ts";

export function groupTests(now: { readonly rig: StoreRig }): void {
  test("returns groups as they were last written", async () => {
    const acme = groupRow("acme", { properties: propertiesOf({ seats: "10" }), propertyBytes: 39 });
    const other = groupRow("acme", { type: "team", version: 3 });
    await now.rig.store.commit(commitOf(0, { groups: [acme, other] }));
    const names = [acme, { ...acme, key: "none" }, other].map(({ projectId, type, key }) => ({
      projectId,
      type,
      key,
    }));
    expect(await now.rig.store.groups(names)).toEqual([acme, other]);
    const newer = { ...acme, properties: propertiesOf({ seats: "11" }), version: 2 };
    await now.rig.store.commit(commitOf(1, { groups: [newer] }));
    expect(await now.rig.store.groups(names)).toEqual([newer, other]);
    const { createdAtMs, updatedAtMs } = acme;
    expect(await now.rig.store.reader.group(names[0]!)).toEqual({
      type: "company",
      key: "acme",
      createdAtMs,
      updatedAtMs,
      propertiesJson: '{"seats":11}',
      version: 2,
    });
    expect(await now.rig.store.reader.group(names[1]!)).toBeUndefined();
    expect((await now.rig.store.reader.totals()).groups).toBe(2);
  });

  test("stores each group type of a project once", async () => {
    const types = [
      { projectId: project, type: "team" },
      { projectId: project, type: "Company" },
      { projectId: "proj_b", type: "team" },
    ];
    await now.rig.store.commit(commitOf(0, { groupTypes: types }));
    await now.rig.store.commit(commitOf(1, { groupTypes: types.slice(0, 1) }));
    expect(await now.rig.store.reader.groupTypes(project)).toEqual(["Company", "team"]);
    const kept = await now.rig.store.groupTypes(["proj_b", "proj_c"]);
    expect(kept).toEqual([{ projectId: "proj_b", type: "team" }]);
  });

  test("stores the earliest time of each group member", async () => {
    const member = { projectId: project, type: "company", key: "acme", distinctId: "ann" };
    for (const [after, time] of [noon, noon + 5, noon - 5].entries())
      await now.rig.store.commit(
        commitOf(after, { groupMembers: [{ ...member, firstSeenAtMs: time }] }),
      );
    const lines = await all(now.rig.store.reader.dump());
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ first_seen_at_ms: noon - 5 }]);
  });
}

export function pagingTests(now: { readonly rig: StoreRig }): void {
  test("returns each person once over pages of any size", async () => {
    const ids = Array.from({ length: 23 }, (_, n) => `id-${n}`);
    const merged = Array.from({ length: 9 }, (_, n) => mergedRow(`was-${n}`, `id-${n}`));
    const members = ids.map((id, n) => personRow(id, { idsTotal: n < 9 ? 2 : 1 }));
    members.push(personRow("id-1", { projectId: "proj_b" }));
    await now.rig.store.commit(commitOf(0, { members: [...members, ...merged] }));
    for (const limit of [1, 5, 23, 24]) {
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const { results, next } = await now.rig.store.reader.persons(project, {
          ...page,
          limit,
          after,
        });
        expect(results.length).toBeLessThanOrEqual(limit);
        seen.push(...results.map(({ mainDistinctId }) => mainDistinctId));
        after = next;
      } while (after !== undefined);
      expect(seen.sort()).toEqual([...ids].sort());
    }
  });

  test("ends a page before its properties are too large", async () => {
    const properties = propertiesOf({ text: JSON.stringify("x".repeat(1_000)) });
    const keys = ["a", "b", "c"];
    await now.rig.store.commit(
      commitOf(0, {
        members: keys.map((key) => personRow(key, { properties })),
        groups: keys.map((key) => groupRow(key, { properties })),
      }),
    );
    for (const [bytesMax, count] of [
      [10, 1],
      [2_500, 2],
      [9_000, 3],
    ] as const) {
      const persons = await now.rig.store.reader.persons(project, { ...page, bytesMax });
      expect(persons.results).toHaveLength(count);
      const groups = await now.rig.store.reader.groups(project, "company", { ...page, bytesMax });
      expect(groups.results.map(({ key }) => key)).toEqual(keys.slice(0, count));
      expect([persons.next, groups.next].map((one) => one !== undefined)).toEqual(
        count === 3 ? [false, false] : [true, true],
      );
    }
  });

  test("ends a page of persons before their ids are too many", async () => {
    const members = ["a", "b", "c"].map((id) => personRow(id, { idsTotal: 4_000 }));
    await now.rig.store.commit(commitOf(0, { members }));
    const { results, next } = await now.rig.store.reader.persons(project, page);
    expect(results).toHaveLength(1);
    expect(next).toBeDefined();
  });

  test("lists groups of a type in the byte order of their keys", async () => {
    const keys = ["B", "a", "é", "\u{ffee}", "😀"];
    const groups = [...keys.map((key) => groupRow(key)), groupRow("a", { type: "team" })];
    await now.rig.store.commit(commitOf(0, { groups: groups.reverse() }));
    const first = await now.rig.store.reader.groups(project, "company", { ...page, limit: 2 });
    const rest = await now.rig.store.reader.groups(project, "company", {
      ...page,
      after: first.next,
    });
    expect([...first.results, ...rest.results].map(({ key }) => key)).toEqual(keys);
  });
}
