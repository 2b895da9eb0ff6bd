// The tables of the PostgreSQL sink, a public interface. The table event_keys makes events unique,
// because a unique key cannot span partitions. The stream's time determines the partition, so that
// events cannot create any number of them.

import type { FieldType } from "../../../records/fields.ts";
import { type EventColumn, eventColumns, personColumn, rejectReasons } from "../sink-records.ts";

const text = 'text COLLATE "C"';

const columnTypes: Readonly<Record<FieldType, string>> = {
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

/** Returns one statement per string. The schema may exist already. */
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

/** Statements for an administrator who creates the tables for the sink. They can be run again. */
export function ddl(schema: string, { withPerson }: { readonly withPerson: boolean }): string {
  return [...tablesSql(schema), ...(withPerson ? [personColumnSql(schema)] : [])]
    .map((one) => `${repeatable(one)};\n`)
    .join("\n");
}

function repeatable(sql: string): string {
  return sql.replace(/^CREATE (TABLE|INDEX) /, "CREATE $1 IF NOT EXISTS ");
}

/** Type in whose binary form each column is copied. */
export const eventTypes: ReadonlyMap<string, string> = new Map(
  [...eventColumns, personColumn].map(({ name, type }) => [
    name,
    columnTypes[type].split(" ", 1)[0]!,
  ]),
);
