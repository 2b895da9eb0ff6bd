import { expect, test } from "vitest";
import { TooLargeError } from "../../../../src/platform/base/store-error.ts";
import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import { toColumns } from "../../../../src/readers/effects/people/property-columns.ts";
import { hostileTexts } from "./hostile-texts.ts";
import {
  byId,
  commitOf,
  groupRow,
  joined,
  linkRow,
  mergedRow,
  noon,
  personRow,
  project,
  propertiesOf,
  rejectedRow,
  stampOf,
} from "./row-kit.ts";
import type { StoreRig } from "./store-rig.ts";

export function peopleTests(now: { readonly rig: StoreRig }): void {
  test("returns a person as it was last written", async () => {
    const full = personRow("ann", {
      firstId: "anon",
      firstStamp: stampOf(0),
      firstUuid: personUuid(project, "anon"),
      mainId: "ann@example.org",
      mainStamp: stampOf(9),
      known: true,
      createdAtMs: Date.UTC(1970, 0, 1) - 1,
      idsTotal: 3,
      properties: toColumns(
        new Map([
          ["plan", { write: { stamp: stampOf(2), json: '"pro"' }, once: undefined }],
          ["gone", { write: { stamp: stampOf(3), json: null }, once: undefined }],
          [
            "source",
            {
              write: { stamp: stampOf(4), json: "1.10" },
              once: { stamp: stampOf(1), json: '"ad"' },
            },
          ],
        ]),
      ),
      propertyBytes: 33,
      version: 7,
    });
    await now.rig.store.commit(commitOf(0, { members: [full, personRow("bob")] }));
    expect(await now.rig.store.members(project, ["ann"])).toEqual([full]);
    const poorer = personRow("ann", { version: 8 });
    await now.rig.store.commit(commitOf(1, { members: [poorer] }));
    expect(await now.rig.store.members(project, ["ann", "unknown"])).toEqual([poorer]);
    expect((await now.rig.store.reader.totals()).persons).toBe(2);
  });

  test("returns the rows between an id and its person once", async () => {
    const rows = [
      personRow("root", { idsTotal: 4 }),
      mergedRow("middle", "root"),
      mergedRow("leaf", "middle"),
      mergedRow("twig", "middle"),
      personRow("other"),
    ];
    await now.rig.store.commit(commitOf(0, { members: rows }));
    const found = await now.rig.store.members(project, ["leaf", "twig", "unknown"]);
    expect(byId(found)).toEqual(byId(rows.slice(0, 4)));
    expect(await now.rig.store.members("proj_b", ["leaf"])).toEqual([]);
  });

  test("rejects a lookup of rows whose properties are too large in total", async () => {
    const large = { propertyBytes: 20 * 1_048_576, properties: propertiesOf({ n: "1" }) };
    const rows = ["ann", "bob"].map((id) => personRow(id, large));
    const groups = ["a", "b"].map((key) => groupRow(key, large));
    const { store } = now.rig;
    await store.commit(commitOf(0, { members: rows, groups }));
    await expect(store.members(project, ["ann", "bob"])).rejects.toThrow(TooLargeError);
    expect(await store.members(project, ["ann"])).toEqual([rows[0]]);
    const names = groups.map(({ projectId, type, key }) => ({ projectId, type, key }));
    await expect(store.groups(names)).rejects.toThrow(TooLargeError);
    expect(await store.groups(names.slice(1))).toEqual([groups[1]]);
  });

  test("finds a merged person under each of its ids and uuids", async () => {
    const anon = { id: "anon", uuid: personUuid(project, "anon") };
    const ann = { id: "ann", uuid: personUuid(project, "ann") };
    const old = { id: "old", uuid: personUuid(project, "old") };
    const survivor = personRow("ann", {
      n: 5,
      firstId: "anon",
      firstStamp: stampOf(1),
      firstUuid: anon.uuid,
      mainId: "old",
      mainStamp: stampOf(8),
      known: true,
      idsTotal: 3,
      properties: propertiesOf({ b: "2", a: '"x"' }),
      version: 4,
    });
    const members = [
      survivor,
      mergedRow("anon", "ann", { n: 1 }),
      mergedRow("old", "anon", { n: 3 }),
    ];
    await now.rig.store.commit(commitOf(0, { members: [personRow("anon"), personRow("zoe")] }));
    await now.rig.store.commit(commitOf(1, { members }));
    const person = {
      uuid: anon.uuid,
      mainDistinctId: "old",
      distinctIds: ["anon", "old", "ann"],
      distinctIdsTotal: 3,
      propertiesJson: '{"a":"x","b":2}',
      known: true,
      createdAtMs: noon + 5,
      lastSeenAtMs: noon,
      version: 4,
      mergedFrom: [old.uuid, ann.uuid],
    };
    for (const { id, uuid } of [anon, ann, old]) {
      expect(await now.rig.store.reader.personByDistinctId(project, id)).toEqual(person);
      expect(await now.rig.store.reader.personByUuid(project, uuid)).toEqual(person);
    }
    expect(await now.rig.store.reader.personByUuid("proj_b", anon.uuid)).toBeUndefined();
    expect(await now.rig.store.reader.personByDistinctId(project, "unknown")).toBeUndefined();
    expect(await now.rig.store.reader.personByUuid(project, "no uuid ' at all")).toBeUndefined();
    expect((await now.rig.store.reader.totals()).persons).toBe(2);
  });

  test("returns the first 100 of a person's 150 ids", async () => {
    const ids = Array.from({ length: 150 }, (_, n) => `id-${n}`);
    const merged = ids.slice(1).map((id, n) => mergedRow(id, ids[n >> 1]!, { n: n + 1 }));
    const members = [personRow("id-0", { n: 0, idsTotal: 150 }), ...merged];
    await now.rig.store.commit(commitOf(0, { members }));
    const person = await now.rig.store.reader.personByDistinctId(project, "id-149");
    expect(person?.distinctIds).toEqual(ids.slice(0, 100));
    expect(person?.distinctIdsTotal).toBe(150);
    expect(person?.mergedFrom).toEqual(ids.slice(1, 101).map((id) => personUuid(project, id)));
  });

  test("reports damage if a row points to a missing row", async () => {
    const members = [personRow("ann", { idsTotal: 2 }), mergedRow("anon", "ann")];
    await now.rig.store.commit(commitOf(0, { members }));
    await now.rig.deleteAll("members WHERE distinct_id = 'ann'");
    await expect(now.rig.store.members(project, ["anon"])).rejects.toThrow(
      `the database is damaged, because the row of ${personUuid(project, "ann")} is missing: restore a `,
    );
  });

  test("returns nothing for ids that are merged in a circle", async () => {
    const { store } = now.rig;
    const members = [mergedRow("one", "two"), mergedRow("two", "one"), personRow("ann")];
    await store.commit(commitOf(0, { members }));
    expect(await store.reader.personByDistinctId(project, "one")).toBeUndefined();
    expect(await store.reader.links(project, personUuid(project, "two"))).toBeUndefined();
    expect(await store.reader.personByDistinctId(project, "ann")).toBeDefined();
  });

  test("lists the links of a person once each, oldest first", async () => {
    const links = [
      linkRow(1, "anon", "ann"),
      linkRow(2, "ann", "old", { kind: "alias", outcome: "already_one" }),
      linkRow(3, "old", "bob", { kind: "merge", outcome: "refused_both_known" }),
      linkRow(4, "bob", "bob", { outcome: "refused_self" }),
    ];
    const members = [
      personRow("ann", { idsTotal: 3 }),
      mergedRow("anon", "ann"),
      mergedRow("old", "anon"),
      personRow("bob"),
    ];
    const again = [linkRow(5, "anon", "ann"), linkRow(6, "anon", "ann", { kind: "alias" })];
    links.push(again[1]!);
    await now.rig.store.commit(commitOf(0, { members, links: [...links].reverse() }));
    await now.rig.store.commit(commitOf(1, { links: again }));
    const shown = links.map(({ a, b, kind, atMs, outcome }, n) => ({
      a,
      b,
      kind,
      atMs,
      outcome,
      eventUuid: links[n]!.eventUuid,
    }));
    const ofAnn = await now.rig.store.reader.links(project, personUuid(project, "old"));
    expect(ofAnn).toEqual([...shown.slice(0, 3), shown[4]]);
    expect(await now.rig.store.reader.links(project, personUuid(project, "bob"))).toEqual(
      shown.slice(2, 4),
    );
    expect(
      await now.rig.store.reader.links(project, personUuid(project, "unknown")),
    ).toBeUndefined();
  });
}

export function hostileTests(now: { readonly rig: StoreRig }): void {
  test("returns hostile strings unchanged", async () => {
    const properties = propertiesOf(
      Object.fromEntries([
        ...hostileTexts.map((text) => [`name ${text}`, JSON.stringify(text)]),
        ...["12345678901234567890.50", "1e400", "-0.0", "[1e5,{}]"].map((one) => [one, one]),
      ]),
    );
    const odd = joined(properties, propertiesOf({ ["__proto__"]: "{}" }));
    const members = hostileTexts.map((text) => personRow(text, { properties: odd }));
    const groups = hostileTexts.map((text) => groupRow(text, { type: text, properties: odd }));
    const links = hostileTexts.map((text, n) => linkRow(n, text, "ann"));
    const rejected = hostileTexts.map((text, n) => rejectedRow(n, { detail: text }));
    await now.rig.store.commit(commitOf(0, { members, groups, links, rejected }));
    expect(byId(await now.rig.store.members(project, hostileTexts))).toEqual(byId(members));
    expect(await now.rig.store.groups(groups)).toEqual(groups);
    for (const text of hostileTexts) {
      const person = await now.rig.store.reader.personByDistinctId(project, text);
      expect(person?.distinctIds).toEqual([text]);
      expect(person?.propertiesJson).toContain('"12345678901234567890.50":12345678901234567890.50');
      expect(person?.propertiesJson).toContain('"1e400":1e400');
      const group = await now.rig.store.reader.group({ projectId: project, type: text, key: text });
      expect(group?.key).toBe(text);
      const shown = await now.rig.store.reader.links(project, personUuid(project, text));
      expect(shown?.map(({ a }) => a)).toEqual([text]);
    }
    const listed = await now.rig.store.reader.rejected(project, 100);
    expect(listed.map(({ detail }) => detail)).toEqual(hostileTexts.toReversed());
  });
}
