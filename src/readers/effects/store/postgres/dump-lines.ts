// Yields the dump of a PostgreSQL database, from one snapshot.

import type { ClientBase } from "pg";
import type { Value } from "../../../../platform/base/table.ts";
import { arrayOf, selectSql } from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import {
  type DumpedPerson,
  type DumpKind,
  dumpedPersonOf,
  dumpSections,
  personLine,
  sectionLine,
  sectionSql,
} from "../dump.ts";
import { dumpedPersons } from "../rows/tables.ts";
import type { ReaderPool } from "./reader-pool.ts";

/** The number is small, because each row has up to 512 KiB of properties. */
const withPropertiesAtOnce = 50;
const rowsAtOnce = 1_000;

const personsSql = `${selectSql(dumpedPersons)}
  WHERE merged_into IS NULL ORDER BY project_id, coalesce(first_uuid, uuid)`;

const idsSql = `WITH RECURSIVE tree (project_id, person, uuid) AS (
    SELECT project_id, uuid, uuid FROM unnest($1::text[], $2::uuid[]) AS p (project_id, uuid)
    UNION ALL
    SELECT tree.project_id, tree.person, m.uuid FROM tree
    JOIN members AS m ON m.project_id = tree.project_id AND m.merged_into = tree.uuid
  )
  SELECT person, json_agg(m.distinct_id ORDER BY m.distinct_id) FROM tree
  JOIN members AS m USING (project_id, uuid) GROUP BY tree.project_id, person`;

export async function* dumpLines(pool: ReaderPool, kind: DumpKind): AsyncGenerator<string> {
  const persons = { sql: personsSql, rowsMax: withPropertiesAtOnce, itemsOf: personLines };
  const sections = dumpSections[kind].map((section) => ({
    sql: sectionSql(section, " NULLS FIRST"),
    rowsMax: section.columns.some(({ type }) => type === "json")
      ? withPropertiesAtOnce
      : rowsAtOnce,
    itemsOf: async (rows: Value[][]) =>
      rows.map((row) => sectionLine(section, row as (string | number | null)[])),
  }));
  yield* pool.batches([persons, ...sections]);
}

async function personLines(rows: Value[][], client: ClientBase): Promise<string[]> {
  const persons = rows.map(dumpedPersonOf);
  const ids = await idsOf(
    client,
    persons.filter(({ idsTotal = 0 }) => idsTotal > 1),
  );
  return persons.map((person) => personLine(person, ids.get(person.uuid)));
}

async function idsOf(
  client: ClientBase,
  persons: readonly DumpedPerson[],
): Promise<Map<string, string[]>> {
  if (persons.length === 0) return new Map();
  const rows = await selectRows(client, idsSql, [
    arrayOf(persons.map(({ projectId }) => projectId)),
    arrayOf(persons.map(({ uuid }) => uuid)),
  ]);
  return new Map(rows.map(([uuid, json]) => [uuid as string, JSON.parse(json as string)]));
}
