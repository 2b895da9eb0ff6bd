// The tables of the PostgreSQL sink, which are a public interface. The table event_keys ensures
// that events are unique, because a unique key cannot include several partitions. The storage time
// of an event determines its partition. The event's own timestamp is not used, because clients
// could create any number of partitions with it.

import { type Client, DatabaseError } from "pg";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import { StoreError } from "../../../platform/base/store-error.ts";
import { arrayOf } from "../../../platform/postgres/arrays.ts";
import { selectRows } from "../../../platform/postgres/select-rows.ts";
import {
  type ColumnType,
  type EventColumn,
  eventColumns,
  personColumn,
  rejectReasons,
} from "../sink-records.ts";

const text = 'text COLLATE "C"';

const columnTypes: Readonly<Record<ColumnType, string>> = {
  id: text,
  uuid: "uuid",
  text: "text",
  time: "timestamptz",
  boolean: "boolean",
  object: "jsonb",
  names: "jsonb",
};

function definitionOf({ name, type, isOptional }: EventColumn): string {
  return `${name} ${columnTypes[type]}${isOptional ? "" : " NOT NULL"}`;
}

export function tablesSql(schema: string): string[] {
  return [
    `CREATE SCHEMA IF NOT EXISTS "${schema}"`,
    `CREATE TABLE "${schema}".events (
${eventColumns.map((column) => `  ${definitionOf(column)}`).join(",\n")}
) PARTITION BY RANGE (stored_at)`,
    `CREATE INDEX events_by_time ON "${schema}".events (project_id, timestamp)`,
    `CREATE TABLE "${schema}".event_keys (
  uuid uuid NOT NULL,
  project_id ${text} NOT NULL,
  day date NOT NULL,
  PRIMARY KEY (uuid, project_id)
)`,
    `CREATE TABLE "${schema}".rejected (
  stream ${text} NOT NULL,
  sequence bigint NOT NULL,
  line integer NOT NULL,
  stored_at timestamptz NOT NULL,
  project_id ${text} NOT NULL,
  reason text NOT NULL CHECK (reason IN (${rejectReasons.map((one) => `'${one}'`).join(", ")})),
  detail text NOT NULL,
  record text NOT NULL
)`,
    `CREATE TABLE "${schema}".incidents (
  noted_at timestamptz NOT NULL DEFAULT now(),
  stream ${text} NOT NULL,
  epoch integer NOT NULL,
  sequence bigint NOT NULL,
  kind text NOT NULL,
  messages bigint NOT NULL,
  detail text NOT NULL
)`,
    `CREATE TABLE "${schema}".positions (
  stream ${text} PRIMARY KEY,
  lane text NOT NULL,
  partition integer NOT NULL,
  epoch integer NOT NULL,
  created text NOT NULL,
  sequence bigint NOT NULL,
  written_at timestamptz NOT NULL DEFAULT now()
)`,
    `CREATE TABLE "${schema}".trails (
  stream ${text} NOT NULL,
  sequence bigint NOT NULL,
  message_id text NOT NULL,
  stored_at_ms bigint NOT NULL,
  PRIMARY KEY (stream, sequence)
)`,
    `CREATE TABLE "${schema}".sink_version AS SELECT ${tablesVersion} AS version`,
  ];
}

export const tablesVersion = 1;

export function personColumnSql(schema: string): string {
  return `ALTER TABLE "${schema}".events ADD COLUMN IF NOT EXISTS ${definitionOf(personColumn)}`;
}

export function ddl(schema: string, { withPerson }: { readonly withPerson: boolean }): string {
  return [...tablesSql(schema), ...(withPerson ? [personColumnSql(schema)] : [])]
    .map((one) => `${repeatable(one)};\n`)
    .join("\n");
}

function repeatable(sql: string): string {
  return sql.replace(/^CREATE (TABLE|INDEX) /, "CREATE $1 IF NOT EXISTS ");
}

/**
 * Finds the first column with a wrong type. Types with the same binary form are accepted, except
 * `name`, which would truncate texts.
 */
const otherTypeSql = `WITH RECURSIVE based AS (
    SELECT attnum, attname, wanted, format_type(atttypid, atttypmod) AS found, atttypid AS base
    FROM unnest($2::text[], $3::text[]) AS expected (name, wanted)
    JOIN pg_attribute ON attrelid = to_regclass($1) AND attname = name AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, wanted, found, typbasetype
    FROM based JOIN pg_type ON oid = base WHERE typtype = 'd')
  SELECT attname, wanted, found FROM based JOIN pg_type ON oid = base
  WHERE typtype <> 'd' AND NOT (CASE wanted
    WHEN 'text' THEN typcategory IN ('S', 'E') AND base <> 'name'::regtype
    WHEN 'timestamptz' THEN base IN ('timestamptz'::regtype, 'timestamp'::regtype)
    ELSE base = to_regtype(wanted) END)
  ORDER BY attnum LIMIT 1`;

/** Rejects with a StoreError that contains the first column with a wrong type. */
export async function checkColumnTypes(
  client: Client,
  schema: string,
  columns: readonly EventColumn[],
): Promise<void> {
  const names = columns.map(({ name }) => name);
  const types = columns.map(({ type }) => columnTypes[type].split(" ", 1)[0]!);
  const values = [`"${schema}".events`, arrayOf(names), arrayOf(types)];
  const [row] = await selectRows(client, otherTypeSql, values);
  if (row === undefined) return;
  const [column, wanted, found] = row;
  throw new StoreError(
    `cannot write events into PostgreSQL: the column ${column} of ${schema}.events is ${found}, and must be ${wanted}: change it back, or add a separate column`,
  );
}

const partSql = `SELECT to_regclass($1) IS NOT NULL, EXISTS (SELECT FROM pg_inherits
  WHERE inhrelid = to_regclass($1) AND inhparent = to_regclass('events'))`;
/** PostgreSQL reports these codes if another partition already contains rows of the day. */
const isElsewhere: ReadonlySet<string | undefined> = new Set(["42P17", "23514"]);

/** Creates the partition of a day, such as 2026-11-22, if necessary. Needs a transaction. */
export async function makePart(client: Client, day: string): Promise<void> {
  const first = `events_${day.replaceAll("-", "")}`;
  let part = first;
  for (let nth = 2; ; nth++) {
    const [row] = await selectRows(client, partSql, [part]);
    const [isThere, isPart] = row ?? [];
    if (isPart === 1) return;
    if (isThere !== 1) break;
    part = `${first}_${nth}`;
  }
  await client.query("SAVEPOINT before_part");
  try {
    for (const sql of statements(part, day)) await client.query(sql);
  } catch (error) {
    if (!(error instanceof DatabaseError && isElsewhere.has(error.code))) throw error;
    await client.query("ROLLBACK TO SAVEPOINT before_part");
  }
  await client.query("RELEASE SAVEPOINT before_part");
}

function statements(part: string, day: string): string[] {
  const next = dayOf(Date.parse(day) + dayMs);
  // The table is created first and then attached, because this does not block readers of other
  // partitions. PostgreSQL adds the indexes and triggers.
  return [
    `CREATE TABLE ${part}
      (LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE)`,
    `ALTER TABLE events ATTACH PARTITION ${part}
      FOR VALUES FROM ('${day} 00:00:00+00') TO ('${next} 00:00:00+00')`,
  ];
}
