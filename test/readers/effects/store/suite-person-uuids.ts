import { expect, test } from "vitest";
import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import { commitOf, mergedRow, personRow, positionRow, project } from "./row-kit.ts";
import type { StoreRig } from "./store-rig.ts";

export function personUuidTests(now: { readonly rig: StoreRig }): void {
  test("returns the persons of many ids of several projects in order", async () => {
    const firstUuid = personUuid(project, "leaf");
    const members = [
      personRow("root", { idsTotal: 3, firstId: "leaf", firstUuid }),
      mergedRow("middle", "root"),
      mergedRow("leaf", "middle"),
      personRow("alone"),
      personRow("alone", { projectId: "proj_b" }),
    ];
    const { store } = now.rig;
    await store.commit(commitOf(0, { members }));
    const many = Array.from({ length: 3_000 }, (_, n) => `unknown "${n}" \\ é`);
    const uuids = await store.reader.personUuids([
      { projectId: project, distinctIds: ["leaf", "unknown", "alone", "root", "middle"] },
      { projectId: "proj_b", distinctIds: ["leaf", "alone"] },
      { projectId: "proj_c", distinctIds: many },
    ]);
    expect(uuids.slice(0, 7)).toEqual([
      firstUuid,
      null,
      personUuid(project, "alone"),
      firstUuid,
      firstUuid,
      null,
      personUuid("proj_b", "alone"),
    ]);
    expect(uuids.slice(7)).toEqual(many.map(() => null));
    expect(await store.reader.personUuids([])).toEqual([]);
  });

  test("reports damage instead of an unknown person if a row is missing", async () => {
    const { store } = now.rig;
    const members = [personRow("root"), mergedRow("leaf", "root")];
    await store.commit(commitOf(0, { members }));
    await now.rig.deleteAll(`members WHERE merged_into IS NULL`);
    const ids = [{ projectId: project, distinctIds: ["root", "leaf"] }];
    await expect(store.reader.personUuids(ids)).rejects.toThrow("damaged");
  });

  test("returns positions with their message ids", async () => {
    const { store } = now.rig;
    const past = "PENSTOCK_HISTORICAL_0";
    const positions = [
      positionRow(7, {
        trail: [6, 7].map((sequence) => ({ sequence, messageId: `m-${sequence}`, storedAtMs: 1 })),
      }),
      positionRow(3, { stream: past, lane: "historical", epoch: 2 }),
    ];
    await store.commit(commitOf(0, { positions }));
    const messages = [
      { stream: "PENSTOCK_LIVE_0", sequence: 6 },
      { stream: past, sequence: 2 },
      { stream: "PENSTOCK_LIVE_9", sequence: 1 },
    ];
    const { created } = positions[0]!;
    expect(await store.reader.reached(messages)).toEqual([
      { stream: "PENSTOCK_LIVE_0", epoch: 1, created, sequence: 7, messageId: "m-6" },
      { stream: past, epoch: 2, created, sequence: 3, messageId: undefined },
    ]);
  });

  test("the version changes with a commit", async () => {
    const { store } = now.rig;
    const first = await store.reader.version();
    expect(await store.reader.version()).toBe(first);
    await store.commit(commitOf(0, { members: [personRow("ann")] }));
    expect(await store.reader.version()).not.toBe(first);
  });
}
