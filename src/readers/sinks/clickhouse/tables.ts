// The tables of the ClickHouse sink, which are a public interface. The storage time of an event
// determines its partition. The event's own timestamp is not used, because clients could create any
// number of partitions with it.

import { type ColumnType, eventColumns, personColumn, rejectReasons } from "../sink-records.ts";

export interface ServerForm {
  readonly version: string;
  /**
   * If true, the server stores times from 1900 to 2299 in milliseconds. Otherwise, it stores times
   * from 1970 to 2105 in seconds.
   */
  readonly hasMilliseconds: boolean;
}

const modernLeast = [21, 8] as const;

export function serverForm(version: string): ServerForm {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [least, minorLeast] = modernLeast;
  return {
    version,
    hasMilliseconds: major > least || (major === least && minor >= minorLeast),
  };
}

export const modernForm = serverForm(modernLeast.join("."));

export const tableNames = ["events", "rejected", "incidents", "positions", "sink_lock"] as const;
type TableName = (typeof tableNames)[number];

const columnTypes: Readonly<Record<ColumnType, string>> = {
  id: "String",
  uuid: "UUID",
  text: "String",
  time: "T",
  boolean: "UInt8",
  object: "String",
  names: "String",
};

const eventTypes: readonly Column[] = [
  ...eventColumns.map(
    ({ name, type, isOptional }): Column => [
      name,
      type === "time" && isOptional ? "Nullable(T)" : columnTypes[type],
    ],
  ),
  ["day", "Date"],
  ["stream", "String"],
  ["sequence", "UInt64"],
  ["line", "UInt32"],
];

const otherTypes = {
  rejected: [
    ["stream", "String"],
    ["sequence", "UInt64"],
    ["line", "UInt32"],
    ["stored_at", "T"],
    ["project_id", "String"],
    ["reason", "String"],
    ["detail", "String"],
    ["record", "String"],
  ],
  incidents: [
    ["noted_at", "DateTime DEFAULT now()"],
    ["stream", "String"],
    ["epoch", "UInt32"],
    ["sequence", "UInt64"],
    ["kind", "String"],
    ["messages", "UInt64"],
    ["detail", "String"],
  ],
  positions: [
    ["stream", "String"],
    ["lane", "String"],
    ["partition", "UInt32"],
    ["epoch", "UInt32"],
    ["created", "String"],
    ["sequence", "UInt64"],
    ["trail_sequences", "Array(UInt64)"],
    ["trail_message_ids", "Array(String)"],
    ["trail_stored_at_ms", "Array(Int64)"],
    ["version", "UInt64 DEFAULT bitShiftLeft(toUInt64(epoch), 48) + sequence"],
    ["written_at", "DateTime DEFAULT now()"],
  ],
} as const;

export const insertedColumns: readonly string[] = eventTypes.map(([name]) => name);

export function personColumnSql(database: string, { hasMilliseconds }: ServerForm): string {
  // IF NOT EXISTS is omitted for older servers, because they do not support it here.
  const unlessThere = hasMilliseconds ? "IF NOT EXISTS " : "";
  return `ALTER TABLE ${database}.events ADD COLUMN ${unlessThere}${personColumn.name} Nullable(UUID)`;
}

export const columnsOf: Readonly<Record<TableName, readonly string[]>> = {
  events: insertedColumns,
  rejected: otherTypes.rejected.map(([name]) => name),
  incidents: otherTypes.incidents.map(([name]) => name),
  positions: otherTypes.positions.map(([name]) => name),
  sink_lock: ["held"],
};

export function databaseSql(database: string): string {
  return `CREATE DATABASE IF NOT EXISTS ${database}`;
}

/** Returns the statements that create the tables. They do not change existing tables. */
export function tablesSql(database: string, form: ServerForm): Record<TableName, string> {
  const { hasMilliseconds } = form;
  const table = (name: TableName, columns: readonly Column[], rest: string): string => {
    const lines = columns.map(([column, type]) => `  ${column} ${typed(type, form)}`);
    const index = "  INDEX timestamp_range timestamp TYPE minmax GRANULARITY 1";
    const all = name === "events" && hasMilliseconds ? [...lines, index] : lines;
    return `CREATE TABLE IF NOT EXISTS ${database}.${name} (\n${all.join(",\n")}\n) ENGINE = ${rest}`;
  };
  // With these settings, a row is on disk before the server acknowledges it. If the same block is
  // inserted again, the server ignores it.
  const safe = hasMilliseconds
    ? "\nSETTINGS fsync_after_insert = 1, fsync_part_directory = 1, non_replicated_deduplication_window = 100"
    : "";
  const { rejected, incidents, positions } = otherTypes;
  return {
    events: table(
      "events",
      eventTypes,
      `ReplacingMergeTree
PARTITION BY toYYYYMM(stored_at)
ORDER BY (project_id, day, event, uuid, distinct_id)${safe}`,
    ),
    rejected: table(
      "rejected",
      rejected,
      `ReplacingMergeTree\nORDER BY (stream, stored_at, sequence, line)${safe}`,
    ),
    incidents: table(
      "incidents",
      incidents,
      `ReplacingMergeTree\nORDER BY (stream, epoch, sequence, kind, detail)${safe}`,
    ),
    positions: table("positions", positions, `ReplacingMergeTree(version)\nORDER BY stream${safe}`),
    sink_lock: table("sink_lock", [["held", "UInt8"]], "Null"),
  };
}

type Column = readonly [name: string, type: string];

function typed(type: string, { hasMilliseconds }: ServerForm): string {
  return type.replace(/\bT\b/, hasMilliseconds ? "DateTime64(3, 'UTC')" : "DateTime('UTC')");
}

export function ddl(
  database: string,
  form: ServerForm,
  { withPerson }: { readonly withPerson: boolean },
): string {
  const reasons = `-- Reasons in ${database}.rejected: ${rejectReasons.join(", ")}.\n\n`;
  const statements = [
    databaseSql(database),
    ...Object.values(tablesSql(database, form)),
    ...(withPerson ? [personColumnSql(database, form)] : []),
  ];
  return reasons + statements.map((one) => `${one};\n`).join("\n");
}
