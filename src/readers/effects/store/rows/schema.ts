// Generates the schema of both databases. The schema is an interface, because users query the
// tables. The schema of a released version never changes. Each change is a new upgrade.

import { StoreError } from "../../../../platform/base/store-error.ts";
import type { ColumnType, Table } from "../../../../platform/base/table.ts";
import * as tables from "./tables.ts";

interface Dialect {
  readonly name: "sqlite" | "postgres";
  readonly types: Readonly<Record<ColumnType, string>>;
  computed(name: string, of: string): string;
  time(ms: string): string;
  uuid(column: string): string;
  json(text: string): string;
  readonly single: string;
}

interface Stored {
  readonly table: Table;
  /** The `<name>_ms` columns that have an additional column `<name>` with a readable time. */
  readonly times?: readonly string[];
  /** Further columns like `times`, but only in PostgreSQL, because the tables have many rows. */
  readonly timesOfPostgres?: readonly string[];
  readonly id?: Partial<Readonly<Record<Dialect["name"], string>>>;
  readonly isAppended?: boolean;
  readonly hasRowid?: boolean;
  readonly fillfactor?: number;
  readonly indexes?: readonly string[];
}

const identity = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY";
const lastingId = { sqlite: "INTEGER PRIMARY KEY AUTOINCREMENT", postgres: identity };

const stored: readonly Stored[] = [
  {
    table: tables.members,
    id: { sqlite: "INTEGER PRIMARY KEY" },
    fillfactor: 85,
    indexes: [
      "INDEX members_merged ON members (project_id, merged_into) WHERE merged_into IS NOT NULL",
    ],
  },
  {
    table: tables.links,
    times: ["at_ms"],
    indexes: [
      "UNIQUE INDEX person_links_once ON person_links (project_id, a, b, kind, outcome)",
      "INDEX person_links_b ON person_links (project_id, b)",
    ],
  },
  { table: tables.groups, times: ["created_at_ms", "updated_at_ms"] },
  { table: tables.groupTypes },
  { table: tables.groupMembers, timesOfPostgres: ["first_seen_at_ms"] },
  { table: tables.usage },
  { table: tables.activeIds, hasRowid: true },
  {
    table: tables.spikes,
    times: ["started_at_ms", "ended_at_ms"],
    indexes: [
      "INDEX spikes_started ON spikes (project_id, started_at_ms, subject)",
      "INDEX spikes_open ON spikes (project_id) WHERE ended_at_ms IS NULL",
    ],
  },
  { table: tables.activity, hasRowid: true },
  {
    table: tables.rejected,
    times: ["at_ms"],
    id: lastingId,
    isAppended: true,
    indexes: ["INDEX rejected_project ON rejected (project_id, id)"],
  },
  { table: tables.rejectedTotals, hasRowid: true },
  { table: tables.positions, times: ["watermark_ms"] },
  { table: tables.trail },
  {
    table: tables.incidents,
    id: { sqlite: "INTEGER PRIMARY KEY", postgres: identity },
    isAppended: true,
  },
  { table: tables.outbox, id: lastingId },
  { table: tables.largeProperties },
];

export const sqlite: Dialect = {
  name: "sqlite",
  types: {
    text: "TEXT",
    uuid: "BLOB",
    integer: "INTEGER",
    int32: "INTEGER",
    real: "REAL",
    boolean: "INTEGER",
    json: "TEXT",
    bytes: "BLOB",
  },
  /** SQLite does not store this column. It computes the value at each write, which takes 3 µs. */
  computed: (name, of) => `${name} TEXT AS (${of})`,
  time: (ms) => {
    const rest = `((${ms} % 1000) + 1000) % 1000`;
    const seconds = `strftime('%Y-%m-%dT%H:%M:%S', (${ms} - ${rest}) / 1000, 'unixepoch')`;
    return `${seconds} || printf('.%03dZ', ${rest})`;
  },
  uuid: (column) => {
    const parts = ["1, 8", "9, 4", "13, 4", "17, 4", "21, 12"];
    return parts.map((part) => `substr(lower(hex(${column})), ${part})`).join(" || '-' || ");
  },
  json: (text) => text,
  single: `
    CREATE TABLE writer (last_commit INTEGER NOT NULL) STRICT;
    INSERT INTO writer VALUES (0);
    CREATE TABLE totals (persons INTEGER NOT NULL, groups INTEGER NOT NULL) STRICT;
    INSERT INTO totals VALUES (0, 0);`,
};

export const postgres: Dialect = {
  name: "postgres",
  types: {
    text: 'text COLLATE "C"',
    uuid: "uuid",
    integer: "bigint",
    int32: "integer",
    // The type is json, because jsonb would change the text.
    real: "double precision",
    boolean: "boolean",
    json: "json",
    bytes: "bytea",
  },
  computed: (name, of) => `${name} timestamptz GENERATED ALWAYS AS (${of}) STORED`,
  time: (ms) => `to_timestamp(${ms} / 1000.0::float8)`,
  uuid: (column) => column,
  json: (text) => `${text}::jsonb`,
  single: `
    CREATE TABLE writer (last_commit bigint NOT NULL) WITH (fillfactor = 10);
    INSERT INTO writer VALUES (0);
    CREATE TABLE totals (
      persons bigint NOT NULL, groups bigint NOT NULL,
      rejected bigint NOT NULL, incidents bigint NOT NULL
    ) WITH (fillfactor = 10);
    INSERT INTO totals VALUES (0, 0, 0, 0);`,
};

export const schemaVersion = 5;

/** An older release wrote the tables. A start of `penstock effects` upgrades them. */
export class OlderTablesError extends StoreError {
  override name = "OlderTablesError";
}

/** A newer release wrote the tables. */
export class NewerTablesError extends StoreError {
  override name = "NewerTablesError";
}

/** Returns the error for tables of another version. `what` is the failed operation. */
export function versionError(what: string, version: number): StoreError {
  const has = `${what}: its tables have version ${version}, and this release`;
  return version > schemaVersion
    ? new NewerTablesError(`${has} supports ${schemaVersion}: use a newer release`)
    : new OlderTablesError(
        `${has} needs ${schemaVersion}: run \`penstock effects\` of this release first`,
      );
}

export function schemaFrom(version: number, dialect: Dialect): readonly string[] {
  return version === 0 ? [everything(dialect)] : upgrades(dialect).slice(version - 1);
}

/**
 * The upgrades. The entry at index n upgrades from version n + 1. The code must not use `tables`,
 * because later versions change it.
 */
function upgrades({ name }: Dialect): readonly string[] {
  const isSqlite = name === "sqlite";
  const text = isSqlite ? "TEXT" : 'text COLLATE "C"';
  return [
    `CREATE TABLE large_properties (
       project_id ${text} NOT NULL PRIMARY KEY, bytes ${isSqlite ? "INTEGER" : "bigint"} NOT NULL
     )${isSqlite ? " STRICT, WITHOUT ROWID" : ""};
     INSERT INTO large_properties
       SELECT project_id, sum(property_bytes) FROM (
         SELECT project_id, property_bytes FROM members WHERE property_bytes > 65536
         UNION ALL
         SELECT project_id, property_bytes FROM groups WHERE property_bytes > 65536
       ) AS counted
       GROUP BY project_id;`,
    `CREATE TABLE installation (subject_prefix ${text} NOT NULL)${isSqlite ? " STRICT" : ""};`,
    `ALTER TABLE rejected ADD COLUMN distinct_id ${text};`,
    "DROP TABLE IF EXISTS runs;",
  ];
}

function everything(dialect: Dialect): string {
  const each = stored.map((one) => created(one, dialect));
  return [...each, views(dialect), dialect.single, installation(dialect)].join("\n");
}

function installation({ name, types }: Dialect): string {
  const end = name === "sqlite" ? " STRICT" : "";
  return `CREATE TABLE installation (subject_prefix ${types.text} NOT NULL)${end};`;
}

function created(one: Stored, dialect: Dialect): string {
  const { table, times = [], timesOfPostgres = [], isAppended = false, indexes = [] } = one;
  const readable = dialect.name === "postgres" ? [...times, ...timesOfPostgres] : times;
  const { name, key, columns, types } = table;
  const id = one.id?.[dialect.name];
  const keyWord = id === undefined ? "PRIMARY KEY" : "UNIQUE";
  const parts = id === undefined ? [] : [`id ${id}`];
  for (const column of columns) {
    const { type, isNullable = false } = types[column]!;
    const isKey = !isAppended && key.length === 1 && key[0] === column;
    const rules = `${isNullable ? "" : " NOT NULL"}${isKey ? ` ${keyWord}` : ""}`;
    parts.push(`"${column}" ${dialect.types[type]}${rules}`);
    if (readable.includes(column))
      parts.push(dialect.computed(column.replace(/_ms$/, ""), dialect.time(column)));
  }
  if (!isAppended && key.length > 1) parts.push(`${keyWord} (${key.join(", ")})`);
  const statements = [`TABLE ${name} (${parts.join(", ")})${endOf(one, dialect)}`, ...indexes];
  return statements.map((sql) => `CREATE ${sql};`).join("\n");
}

function endOf({ id, hasRowid = false, fillfactor }: Stored, { name }: Dialect): string {
  if (name === "postgres")
    return fillfactor === undefined ? "" : ` WITH (fillfactor = ${fillfactor})`;
  return id !== undefined || hasRowid ? " STRICT" : " STRICT, WITHOUT ROWID";
}

function views({ time, uuid, json }: Dialect): string {
  return `
  CREATE VIEW persons AS
    SELECT project_id, ${uuid("coalesce(first_uuid, uuid)")} AS uuid,
      coalesce(main_id, first_id, distinct_id) AS main_distinct_id,
      ids_total AS distinct_ids_total, ${json("coalesce(properties, '{}')")} AS properties, known,
      ${time("created_at_ms")} AS created_at, ${time("last_seen_at_ms")} AS last_seen_at,
      created_at_ms, last_seen_at_ms, version
    FROM members WHERE merged_into IS NULL;

  CREATE VIEW person_ids AS
    SELECT project_id, distinct_id, (
      WITH RECURSIVE up (shown, merged_into) AS (
        SELECT coalesce(m.first_uuid, m.uuid), m.merged_into
        UNION ALL
        SELECT coalesce(next.first_uuid, next.uuid), next.merged_into FROM up
        JOIN members AS next ON next.project_id = m.project_id AND next.uuid = up.merged_into
      )
      SELECT ${uuid("shown")} FROM up WHERE merged_into IS NULL
    ) AS person_uuid, ${uuid("uuid")} AS own_uuid, ${time("first_ms")} AS first_seen_at
    FROM members AS m;

  CREATE VIEW person_uuids AS
    SELECT project_id, own_uuid AS uuid, person_uuid, distinct_id FROM person_ids;`;
}
