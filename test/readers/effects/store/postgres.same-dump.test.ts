import fc from "fast-check";
import { expect, test } from "vitest";
import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";
import { PostgresStore } from "../../../../src/readers/effects/store/postgres/store.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { postgresForFile } from "../../../kit/for-file.ts";
import { temporaryFolder } from "../../../kit/processes.ts";
import { newDatabase } from "./postgres-rig.ts";
import { commitsOf, history } from "./random-commits.ts";
import { all, project } from "./row-kit.ts";

const server = await postgresForFile();

async function answersOf(store: EffectsStore, ids: readonly string[]): Promise<unknown> {
  const { reader } = store;
  const persons = [];
  let after: string | undefined;
  do {
    const page = await reader.persons(project, { after, limit: 4, bytesMax: 2_000 });
    persons.push(page);
    after = page.next;
  } while (after !== undefined);
  const links = [];
  for (const { uuid } of persons.flatMap(({ results }) => results).slice(0, 5))
    links.push(await reader.links(project, uuid));
  const members = [...(await store.members(project, ids))].sort((a, b) =>
    a.uuid < b.uuid ? -1 : 1,
  );
  return {
    persons,
    links,
    members,
    lastCommit: await store.lastCommit(),
    totals: await reader.totals(),
    types: await reader.groupTypes(project),
    rejected: await reader.rejected(project, 50),
    positions: await store.positions(),
  };
}

test("SQLite and PostgreSQL hold the same rows after any commits", async () => {
  const folder = temporaryFolder();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const sqlite = new SqliteStore({ file: `${folder}/${++runs}.db` });
      const postgres = new PostgresStore({ url: await newDatabase(server) });
      const stores = [sqlite, postgres];
      try {
        for (const store of stores) await store.open();
        for (const commit of commitsOf(steps))
          for (const store of stores) await store.commit(commit);
        const ids = [...new Set(steps.flatMap(({ a, b }) => [a, b]))];
        expect(await all(postgres.reader.dump())).toEqual(await all(sqlite.reader.dump()));
        expect(await answersOf(postgres, ids)).toEqual(await answersOf(sqlite, ids));
      } finally {
        for (const store of stores) await store.close();
      }
    }),
    { numRuns: 2 },
  );
});
