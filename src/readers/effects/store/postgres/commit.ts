// Writes a commit in one transaction. The first statement replaces the number of the last commit.

import type { ClientBase } from "pg";
import { pick, type Table, type Value } from "../../../../platform/base/table.ts";
import {
  arrayOf,
  chunksOf,
  columnsSql,
  unnestSql,
  upsertSql,
} from "../../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import { FencedError } from "../port.ts";
import { type FlatCommit, upserted, upsertedLists } from "../rows/flat-commit.ts";
import * as tables from "../rows/tables.ts";
import { isTrimDue, rejectedRetained, rowsOfProjects } from "../shared-sql.ts";

interface Part {
  readonly shown: string;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/**
 * Writes a commit. Rejects with a FencedError if `after` is not the last commit. If an error closes
 * the connection, the commit may or may not be stored.
 */
export async function writeCommit(
  client: ClientBase,
  commit: FlatCommit,
  { shown, isFirst, isLast }: Part,
): Promise<void> {
  if (isFirst) await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
  try {
    if (isFirst) await writeNumber(client, commit, shown);
    await writeRows(client, commit);
    if (isLast) await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

async function writeNumber(
  client: ClientBase,
  { number, after }: FlatCommit,
  shown: string,
): Promise<void> {
  const { rowCount } = await client.query(
    "UPDATE writer SET last_commit = $1 WHERE last_commit = $2",
    [number, after],
  );
  if (rowCount === 1) return;
  throw new FencedError(
    `cannot commit in PostgreSQL at ${shown}: another program has written to the database (its last commit is not ${after}): end that program, and start \`penstock effects\` again`,
  );
}

async function writeRows(client: ClientBase, commit: FlatCommit): Promise<void> {
  await writeBarePersons(client, commit.barePersons);
  await writeCounted(client, tables.members, commit.newPersons);
  await writeCounted(client, tables.members, commit.members);
  await writeMerged(client, commit.mergedMembers);
  await writeCounted(client, tables.groups, commit.groups);
  await insert(client, tables.links, commit.links, " ON CONFLICT DO NOTHING");
  await removeFromTrails(client, commit.trailRemoved);
  for (const list of upsertedLists) {
    const table = upserted[list];
    const sql = upsertSql(table, sourceOf(table));
    await each(client, { table, values: commit[list], sql });
  }
  await writeRejected(client, commit.rejected);
  await append(client, tables.incidents, commit.incidents);
}

/**
 * Returns the source of the statement. It combines rows with the same key, because one statement
 * must not write a row twice.
 */
function sourceOf(table: Table): string {
  const { key, columns, types } = table;
  const rest = columns
    .filter((column) => types[column]?.merge !== undefined)
    .map((column) => `${types[column]?.merge}("${column}")::bigint AS "${column}"`);
  if (rest.length === 0) return unnestSql(table, "new");
  return `(SELECT ${[columnsSql(key), ...rest].join(", ")} FROM ${unnestSql(table, "given")}
    GROUP BY ${columnsSql(key)}) AS new`;
}

async function each(
  client: ClientBase,
  { table, values, sql }: { table: Table; values: readonly Value[]; sql: string },
): Promise<void> {
  for (const arrays of chunksOf(values, table.columns.length)) await client.query(sql, arrays);
}

async function writeBarePersons(client: ClientBase, values: readonly Value[]): Promise<void> {
  const table = tables.barePersons;
  const constants = { known: "false", ids_total: "1", property_bytes: "0", version: "1" };
  const columns = [...table.columns, ...Object.keys(constants)];
  const given = `(SELECT ${[columnsSql(table.columns), ...Object.values(constants)].join(", ")}
    FROM ${unnestSql(table, "given")}) AS new (${columnsSql(columns)})`;
  const upsert = upsertSql({ ...table, columns }, given, tables.members.columns);
  await each(client, { table, values, sql: countedSql(upsert, "persons") });
}

async function writeCounted(
  client: ClientBase,
  table: Table,
  values: readonly Value[],
): Promise<void> {
  const upsert = upsertSql(table, unnestSql(table, "new"));
  const sql = countedSql(upsert, table === tables.groups ? "groups" : "persons");
  await each(client, { table, values, sql });
}

function countedSql(upsert: string, total: "persons" | "groups"): string {
  return `WITH written AS (${upsert} RETURNING old.xmax = 0 AS is_new)
    UPDATE totals SET ${total} = ${total} + (SELECT count(*) FROM written WHERE is_new)`;
}

/** The statement looks up each row individually, because a join might scan the whole table. */
async function writeMerged(client: ClientBase, values: readonly Value[]): Promise<void> {
  const table = tables.mergedMembers;
  const sql = `WITH new AS MATERIALIZED (SELECT * FROM ${unnestSql(table, "given")}),
    written AS (${upsertSql(table, "new", tables.members.columns)})
    UPDATE totals SET persons = persons - (
      SELECT count(*) FROM new CROSS JOIN LATERAL (
        SELECT merged_into FROM ${table.name} AS old
        WHERE old.project_id = new.project_id AND old.uuid = new.uuid LIMIT 1
      ) AS before WHERE before.merged_into IS NULL)`;
  await each(client, { table, values, sql });
}

async function removeFromTrails(client: ClientBase, values: readonly Value[]): Promise<void> {
  const key = pick(tables.trail, ["stream", "sequence"]);
  const sql = `DELETE FROM position_trail USING ${unnestSql(key, "gone")}
    WHERE position_trail.stream = gone.stream AND position_trail.sequence = gone.sequence`;
  for (const arrays of chunksOf(values, key.columns.length)) await client.query(sql, arrays);
}

async function writeRejected(client: ClientBase, values: readonly Value[]): Promise<void> {
  await append(client, tables.rejected, values);
  const added = rowsOfProjects(values, tables.rejected.columns.length);
  if (added.size === 0) return;
  const totals = await selectRows(
    client,
    `INSERT INTO rejected_totals AS old SELECT * FROM unnest($1::text[], $2::bigint[])
     ON CONFLICT (project_id) DO UPDATE SET total = old.total + excluded.total
     RETURNING project_id, total`,
    [arrayOf([...added.keys()]), arrayOf([...added.values()])],
  );
  for (const [projectId, total] of totals) {
    if (!isTrimDue(total as number, added.get(projectId as string) ?? 0)) continue;
    // The statement counts the existing rows, because an operator may have deleted some.
    await client.query(
      `DELETE FROM rejected WHERE project_id = $1 AND id <= (
         SELECT id FROM rejected WHERE project_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)`,
      [projectId, rejectedRetained],
    );
  }
}

async function append(client: ClientBase, table: Table, values: readonly Value[]): Promise<void> {
  if (values.length === 0) return;
  await insert(client, table, values);
  await client.query(`UPDATE totals SET ${table.name} = ${table.name} + $1`, [
    values.length / table.columns.length,
  ]);
}

async function insert(
  client: ClientBase,
  table: Table,
  values: readonly Value[],
  unless = "",
): Promise<void> {
  const { name, columns } = table;
  const sql = `INSERT INTO ${name} (${columnsSql(columns)})
    SELECT ${columnsSql(columns)} FROM ${unnestSql(table, "given", "at")} ORDER BY "at"${unless}`;
  await each(client, { table, values, sql });
}
