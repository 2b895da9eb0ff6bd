// Questions about people, within a transaction of the caller's. A person is the row at the end of
// the pointers; whose ids are his is found the other way round. The pointers make a tree of a few
// steps, whatever the number of ids.

import type { ClientBase } from "pg";
import { linksMax, linksReadMax } from "../bounds.ts";
import { idBytes, type Link, type Page, type PageOf, type Person } from "../port.ts";
import type { Value } from "../rows/tables.ts";
import * as tables from "../rows/tables.ts";
import { columnsSql } from "./arrays.ts";
import { cutPage, pageSql } from "./pages.ts";
import { selectRows } from "./select-rows.ts";

/** Ids, and uuids of `mergedFrom`, that a person is shown with. */
const shownMax = 100;
const columns = columnsSql(tables.members.columns);

/** The uuids of all members of the person whose row has the uuid $2. */
const membersOfPerson = `WITH RECURSIVE tree (uuid) AS (
    SELECT $2::uuid
    UNION ALL
    SELECT m.uuid FROM tree JOIN members AS m ON m.project_id = $1 AND m.merged_into = tree.uuid
  ), ids AS (
    SELECT m.distinct_id, m.uuid, m.first_ms, m.first_rank FROM tree
    JOIN members AS m ON m.project_id = $1 AND m.uuid = tree.uuid
  )`;

const personRowSql = `WITH RECURSIVE up (uuid, merged_into) AS (
    SELECT uuid, merged_into FROM members WHERE project_id = $1 AND uuid = $2::uuid
    UNION ALL
    SELECT m.uuid, m.merged_into FROM up
    JOIN members AS m ON m.project_id = $1 AND m.uuid = up.merged_into
  )
  SELECT ${columns} FROM members
  WHERE project_id = $1 AND uuid = (SELECT uuid FROM up WHERE merged_into IS NULL)`;

const linkColumns = "a, b, kind, at_ms, event_uuid, outcome";
const placeColumns = "lane, partition, epoch, sequence, line";
const linksSql = `${membersOfPerson}
  SELECT ${linkColumns} FROM (
    (SELECT ${linkColumns}, ${placeColumns} FROM ids
     JOIN person_links AS l ON l.project_id = $1 AND l.a = ids.distinct_id LIMIT $4)
    UNION
    (SELECT ${linkColumns}, ${placeColumns} FROM ids
     JOIN person_links AS l ON l.project_id = $1 AND l.b = ids.distinct_id LIMIT $4)
  ) AS links ORDER BY at_ms, ${placeColumns} LIMIT $3`;

const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export async function personByUuid(
  client: ClientBase,
  projectId: string,
  uuid: string,
): Promise<Person | undefined> {
  const row = await personRow(client, projectId, uuid);
  return row && (await personOf(client, projectId, row));
}

export async function personsPage(
  client: ClientBase,
  projectId: string,
  { after, limit, bytesMax }: Page,
): Promise<PageOf<Person>> {
  if (after !== undefined && !pattern.test(after)) return { results: [], next: undefined };
  const where = `project_id = $1 AND merged_into IS NULL${after === undefined ? "" : " AND uuid > $4::uuid"}`;
  const { name: from } = tables.members;
  const sql = pageSql({ columns: tables.members.columns, from, where, key: "uuid" });
  const values = [projectId, limit + 1, bytesMax, ...(after === undefined ? [] : [after])];
  const rows = await selectRows(client, sql, values);
  return await cutPage(rows, { limit, bytesMax }, async (row) => {
    const person = await personOf(client, projectId, row);
    const bytes = person.propertiesJson.length + idBytes * person.distinctIdsTotal;
    return { result: person, bytes, key: row[1] as string };
  });
}

/** Undefined: no such person. */
export async function linksOf(
  client: ClientBase,
  projectId: string,
  uuid: string,
): Promise<Link[] | undefined> {
  const row = await personRow(client, projectId, uuid);
  if (row === undefined) return undefined;
  const values = [projectId, row[1] ?? null, linksMax, linksReadMax];
  const rows = await selectRows(client, linksSql, values);
  return rows.map(([a, b, kind, atMs, eventUuid, outcome]) => ({
    a: a as string,
    b: b as string,
    kind: kind as string,
    atMs: atMs as number,
    eventUuid: eventUuid as string,
    outcome: outcome as string,
  }));
}

/** The row of the person that this uuid answers for. */
async function personRow(
  client: ClientBase,
  projectId: string,
  uuid: string,
): Promise<Value[] | undefined> {
  // PostgreSQL takes other forms for a uuid too, which were never shown.
  if (!pattern.test(uuid)) return undefined;
  return (await selectRows(client, personRowSql, [projectId, uuid]))[0];
}

async function personOf(client: ClientBase, projectId: string, row: Value[]): Promise<Person> {
  const [, uuid, distinctId, , , , ownFirstId, ownFirstUuid, , , mainId] = row;
  const firstId = (ownFirstId ?? distinctId) as string;
  const distinctIdsTotal = row[16] as number;
  const isOne = distinctIdsTotal <= 1;
  const ids = isOne ? [] : await firstIds(client, [projectId, uuid as string, firstId]);
  return {
    uuid: (ownFirstUuid ?? uuid) as string,
    mainDistinctId: (mainId ?? firstId) as string,
    distinctIds: isOne ? [firstId] : ids.slice(0, shownMax).map(({ id }) => id),
    distinctIdsTotal,
    propertiesJson: (row[19] ?? "{}") as string,
    known: row[13] === 1,
    createdAtMs: row[14] as number,
    lastSeenAtMs: row[15] as number,
    version: row[18] as number,
    mergedFrom: ids.slice(1).map((one) => one.uuid),
  };
}

/** The first one, and those first seen after it. */
async function firstIds(
  client: ClientBase,
  person: readonly [projectId: string, uuid: string, firstId: string],
): Promise<{ id: string; uuid: string }[]> {
  const sql = `${membersOfPerson} SELECT distinct_id, uuid FROM ids
    ORDER BY distinct_id <> $3, first_ms, first_rank, distinct_id LIMIT $4`;
  const rows = await selectRows(client, sql, [...person, shownMax + 1]);
  return rows.map(([id, uuid]) => ({ id: id as string, uuid: uuid as string }));
}
