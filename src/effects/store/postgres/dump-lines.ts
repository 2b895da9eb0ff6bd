// The dump out of PostgreSQL: all of one moment, read batch by batch.

import type { ClientBase } from "pg";
import { type DumpSection, dumpSections, personLine, sectionLine } from "../dump.ts";
import type { Value } from "../rows/tables.ts";
import { arrayOf, columnsSql } from "./arrays.ts";
import type { ReaderPool } from "./reader-pool.ts";
import { selectRows } from "./select-rows.ts";

/** Persons may have 512 KiB of properties each. */
const personsAtOnce = 200;
const rowsAtOnce = 1_000;

const personsSql = `SELECT project_id, uuid, coalesce(first_uuid, uuid) AS shown, distinct_id,
    coalesce(main_id, first_id, distinct_id), known, created_at_ms, last_seen_at_ms, ids_total,
    coalesce(properties, '{}')
  FROM members WHERE merged_into IS NULL ORDER BY project_id, shown`;

const idsSql = `WITH RECURSIVE tree (project_id, person, uuid) AS (
    SELECT project_id, uuid, uuid FROM unnest($1::text[], $2::uuid[]) AS p (project_id, uuid)
    UNION ALL
    SELECT tree.project_id, tree.person, m.uuid FROM tree
    JOIN members AS m ON m.project_id = tree.project_id AND m.merged_into = tree.uuid
  )
  SELECT person, json_agg(m.distinct_id ORDER BY m.distinct_id) FROM tree
  JOIN members AS m USING (project_id, uuid) GROUP BY tree.project_id, person`;

type PersonRow = readonly [
  projectId: string,
  uuid: string,
  shown: string,
  distinctId: string,
  mainId: string,
  known: number,
  createdAtMs: number,
  lastSeenAtMs: number,
  idsTotal: number,
  json: string,
];

export async function* dumpLines(pool: ReaderPool): AsyncGenerator<string> {
  const persons = { sql: personsSql, rowsMax: personsAtOnce, itemsOf: personLines };
  const sections = dumpSections.map((section) => ({
    sql: sectionSql(section),
    rowsMax: rowsAtOnce,
    itemsOf: async (rows: Value[][]) =>
      rows.map((row) => sectionLine(section, row as (string | number | null)[])),
  }));
  yield* pool.batches([persons, ...sections]);
}

function sectionSql({ table, columns, order }: DumpSection): string {
  const sorted = order.map((name) => `"${name}" NULLS FIRST`).join(", ");
  return `SELECT ${columnsSql(columns.map(({ name }) => name))} FROM ${table} ORDER BY ${sorted}`;
}

async function personLines(rows: Value[][], client: ClientBase): Promise<string[]> {
  const persons = rows as unknown as PersonRow[];
  const ids = await idsOf(
    client,
    persons.filter(([, , , , , , , , idsTotal]) => idsTotal > 1),
  );
  return persons.map(([projectId, uuid, shown, distinctId, mainId, known, ...rest]) => {
    const [createdAtMs, lastSeenAtMs, , propertiesJson] = rest;
    return personLine({
      projectId,
      uuid: shown,
      mainDistinctId: mainId,
      distinctIds: ids.get(uuid) ?? [distinctId],
      known: known === 1,
      createdAtMs,
      lastSeenAtMs,
      propertiesJson,
    });
  });
}

/** By the uuid of the person's row, which has the project in it. */
async function idsOf(
  client: ClientBase,
  persons: readonly PersonRow[],
): Promise<Map<string, string[]>> {
  if (persons.length === 0) return new Map();
  const rows = await selectRows(client, idsSql, [
    arrayOf(persons.map(([projectId]) => projectId)),
    arrayOf(persons.map(([, uuid]) => uuid)),
  ]);
  return new Map(rows.map(([uuid, json]) => [uuid as string, JSON.parse(json as string)]));
}
