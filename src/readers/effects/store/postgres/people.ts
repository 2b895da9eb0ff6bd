// Queries persons in a transaction of the caller. The ids of a person are the rows whose pointers
// lead to the row of the person.

import type { ClientBase } from "pg";
import { isUuid } from "../../../../platform/base/forms.ts";
import type { Row, Table, Value } from "../../../../platform/base/table.ts";
import { columnsSql, selectSql } from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import { idBytes, type Link, type Page, type PageOf, type Person } from "../port.ts";
import {
  firstIdOf,
  idsTotalOf,
  memberAt,
  personOf,
  shownIdsMax,
  shownLinkOf,
} from "../rows/read-rows.ts";
import * as tables from "../rows/tables.ts";
import { linksMax, linksReadMax } from "../shared-sql.ts";

const membersOfPerson = `WITH RECURSIVE tree (uuid) AS (
    SELECT $2::uuid
    UNION ALL
    SELECT m.uuid FROM tree JOIN members AS m ON m.project_id = $1 AND m.merged_into = tree.uuid
  ), ids AS (
    SELECT m.distinct_id, m.uuid, m.first_ms, m.first_rank FROM tree
    JOIN members AS m ON m.project_id = $1 AND m.uuid = tree.uuid
  )`;

// Selects the row of a person. UNION is used instead of UNION ALL, so that the query ends even if
// the pointers form a cycle.
const personRowSql = `WITH RECURSIVE up (uuid, merged_into) AS (
    SELECT uuid, merged_into FROM members WHERE project_id = $1 AND uuid = $2::uuid
    UNION
    SELECT m.uuid, m.merged_into FROM up
    JOIN members AS m ON m.project_id = $1 AND m.uuid = up.merged_into
  )
  ${selectSql(tables.members)}
  WHERE project_id = $1 AND uuid = (SELECT uuid FROM up WHERE merged_into IS NULL)`;

const linkColumns = columnsSql(tables.shownLinks.columns);
const placeColumns = columnsSql(tables.placeColumns);
const linksSql = `${membersOfPerson}
  SELECT ${linkColumns} FROM (
    (SELECT ${linkColumns}, ${placeColumns} FROM ids
     JOIN person_links AS l ON l.project_id = $1 AND l.a = ids.distinct_id LIMIT $4)
    UNION
    (SELECT ${linkColumns}, ${placeColumns} FROM ids
     JOIN person_links AS l ON l.project_id = $1 AND l.b = ids.distinct_id LIMIT $4)
  ) AS links ORDER BY at_ms, ${placeColumns} LIMIT $3`;

export async function personByUuid(
  client: ClientBase,
  projectId: string,
  uuid: string,
): Promise<Person | undefined> {
  const row = await personRow(client, projectId, uuid);
  return row && (await shownPerson(client, projectId, row));
}

export async function personsPage(
  client: ClientBase,
  projectId: string,
  { after, limit, bytesMax }: Page,
): Promise<PageOf<Person>> {
  if (after !== undefined && !isUuid(after)) return { results: [], next: undefined };
  const where = "project_id = $1 AND merged_into IS NULL";
  const query = { table: tables.members, where, key: "uuid", projectId, values: [] };
  const rows = pageRows(client, query, { after, limit, bytesMax });
  return await cutPage(rows, { limit, bytesMax }, async (row) => {
    const person = await shownPerson(client, projectId, row);
    const bytes = person.propertiesJson.length + idBytes * person.distinctIdsTotal;
    return { result: person, bytes, key: row[memberAt.uuid] as string };
  });
}

export async function linksOf(
  client: ClientBase,
  projectId: string,
  uuid: string,
): Promise<Link[] | undefined> {
  const row = await personRow(client, projectId, uuid);
  if (row === undefined) return undefined;
  const values = [projectId, row[memberAt.uuid] ?? null, linksMax, linksReadMax];
  const rows = await selectRows(client, linksSql, values);
  return rows.map(shownLinkOf);
}

async function personRow(
  client: ClientBase,
  projectId: string,
  uuid: string,
): Promise<Row | undefined> {
  // PostgreSQL also accepts other forms of a uuid, but the gateway never returns them.
  if (!isUuid(uuid)) return undefined;
  return (await selectRows(client, personRowSql, [projectId, uuid]))[0];
}

async function shownPerson(client: ClientBase, projectId: string, row: Row): Promise<Person> {
  if (idsTotalOf(row) <= 1) return personOf(row, []);
  const uuid = row[memberAt.uuid] as string;
  return personOf(row, await firstIds(client, [projectId, uuid, firstIdOf(row)]));
}

async function firstIds(
  client: ClientBase,
  person: readonly [projectId: string, uuid: string, firstId: string],
): Promise<{ id: string; uuid: string }[]> {
  const sql = `${membersOfPerson} SELECT distinct_id, uuid FROM ids
    ORDER BY distinct_id <> $3, first_ms, first_rank, distinct_id LIMIT $4`;
  const rows = await selectRows(client, sql, [...person, shownIdsMax + 1]);
  return rows.map(([id, uuid]) => ({ id: id as string, uuid: uuid as string }));
}

interface PageQuery {
  readonly table: Table;
  readonly where: string;
  readonly key: string;
  readonly projectId: string;
  readonly values: readonly Value[];
}

const firstRows = 16;

/**
 * Yields the rows of a page. The first query reads few rows, because a few large rows can fill a
 * page. Each further query reads at most twice as many rows as the previous query.
 */
export async function* pageRows(
  client: ClientBase,
  query: PageQuery,
  { after, limit, bytesMax }: Page,
): AsyncGenerator<Value[]> {
  const { table, key, projectId, values } = query;
  const at = table.columns.indexOf(key);
  let last: Value = after ?? null;
  let left = limit + 1;
  for (let size = firstRows; left > 0; size *= 2) {
    const wanted = Math.min(size, left);
    const from = last === null ? [] : [last];
    const sql = pageSql(query, last === null ? undefined : `$${4 + values.length}`);
    const rows = await selectRows(client, sql, [projectId, wanted, bytesMax, ...values, ...from]);
    yield* rows;
    if (rows.length < wanted) return;
    left -= wanted;
    last = rows.at(-1)![at]!;
  }
}

function pageSql({ table, where, key }: PageQuery, after: string | undefined): string {
  const names = columnsSql(table.columns);
  const window = `ORDER BY "${key}" ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING`;
  const behind = after === undefined ? "" : ` AND "${key}" > ${after}`;
  return `SELECT ${names} FROM (
      SELECT ${names}, coalesce(sum(chars) OVER (${window}), 0) AS before_last FROM (
        SELECT ${names}, char_length(coalesce(properties::text, '{}')) AS chars
        FROM ${table.name} WHERE ${where}${behind} ORDER BY "${key}" LIMIT $2
      ) AS rows
    ) AS counted WHERE before_last <= $3 ORDER BY "${key}"`;
}

export async function cutPage<Result>(
  rows: Iterable<Value[]> | AsyncIterable<Value[]>,
  { limit, bytesMax }: Pick<Page, "limit" | "bytesMax">,
  read: (row: Value[]) => Promise<{ result: Result; bytes: number; key: string }>,
): Promise<PageOf<Result>> {
  const results: Result[] = [];
  let next: string | undefined;
  let sum = 0;
  for await (const row of rows) {
    if (results.length > 0 && results.length >= limit) return { results, next };
    const { result, bytes, key } = await read(row);
    sum += bytes;
    if (results.length > 0 && sum > bytesMax) return { results, next };
    results.push(result);
    next = key;
  }
  return { results, next: undefined };
}
