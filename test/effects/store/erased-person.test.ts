// The guide's statements that remove one person: nothing of them is left, and the rest works.

import { readFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import type { StorePlace } from "../../../src/effects/store/open.ts";
import { openedStore, startDatabases } from "../../../testkit/effects-databases.ts";
import { asked } from "../../../testkit/postgres-rows.ts";
import { commitOf, linkRow, mergedRow, personRow } from "./row-kit.ts";

const guide = path.join(import.meta.dirname, "../../../docs/guides/people-in-sql.md");
const databases = [await startDatabases("SQLite"), await startDatabases("PostgreSQL")];
afterAll(async () => {
  for (const one of databases) await one.remove();
});

async function executed(place: StorePlace, sql: string): Promise<void> {
  if (place.kind === "postgres") {
    await asked(place.url, `SET search_path = penstock_effects; ${sql}`);
    return;
  }
  const database = new DatabaseSync(place.file);
  database.exec(sql);
  database.close();
}

describe.each(databases)("in $kind", (of) => {
  test("one person goes whole, and comes back as a new one", async () => {
    const text = readFileSync(guide, "utf8");
    const [sql = ""] = /BEGIN;\n[^`]*COMMIT;/.exec(text) ?? [];
    const projectId = "demo";
    const place = await of.newDatabase();
    const store = await openedStore(place);
    const members = [
      personRow("ada", { projectId, idsTotal: 2 }),
      mergedRow("anon", "ada", { projectId }),
      personRow("bob", { projectId }),
      personRow("ada", { projectId: "other" }),
    ];
    const groupMembers = ["anon", "bob"].map((distinctId) => ({
      ...{ projectId, type: "company", key: "acme", distinctId, firstSeenAtMs: 1 },
    }));
    const links = [linkRow(1, "anon", "ada", { projectId })];
    await store.commit(commitOf(0, { members, groupMembers, links }));
    await store.close();
    await executed(place, sql);
    const after = await openedStore(place);
    expect(await after.members(projectId, ["ada", "anon"])).toEqual([]);
    expect(await after.members(projectId, ["bob"])).toHaveLength(1);
    expect(await after.members("other", ["ada"])).toHaveLength(1);
    expect(await after.reader.totals()).toMatchObject({ persons: 2 });
    await after.commit(commitOf(1, { members: [personRow("anon", { projectId })] }));
    expect((await after.reader.personByDistinctId(projectId, "anon"))?.distinctIds).toEqual([
      "anon",
    ]);
    expect(await after.reader.personByDistinctId(projectId, "ada")).toBeUndefined();
    await after.close();
  });
});
