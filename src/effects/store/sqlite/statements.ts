// The texts of SQLite's statements, as they follow from the columns of a table. Values are taken in
// the order of the columns. Sends nothing.

import { constantsOfNewPersons, members, newPersons, type Table } from "../rows/tables.ts";

/** Sent as text and stored as 16 bytes. */
const uuidColumns: readonly string[] = ["uuid", "merged_into", "first_uuid"];

/** `constants`: columns that are set beside them. */
export function insertSql(
  { name, columns }: Table,
  count = 1,
  constants: Readonly<Record<string, number>> = {},
): string {
  const names = [...columns, ...Object.keys(constants)].join(", ");
  const row = `(${[marks(columns), ...Object.values(constants)].join(", ")})`;
  const rows = Array.from({ length: count }, () => row).join(", ");
  return `INSERT INTO ${name} (${names}) VALUES ${rows}`;
}

/** Replaces the rows of the same key; `other` is what becomes of one instead. */
export function upsertSql(table: Table, count = 1, other?: string): string {
  const rest = table.columns.filter((column) => !table.key.includes(column));
  const set = rest.map((column) => `${column} = excluded.${column}`).join(", ");
  const change = rest.length === 0 ? "DO NOTHING" : `DO UPDATE SET ${other ?? set}`;
  return `${insertSql(table, count)} ON CONFLICT (${table.key.join(", ")}) ${change}`;
}

/** Takes the parameters that the insert takes. `constants`: columns that are set beside them. */
export function updateSql(
  { name, key, columns }: Table,
  constants: Readonly<Record<string, number | null>> = {},
): string {
  function equal(column: string): string {
    return `${column} = ${parameter(column, `?${columns.indexOf(column) + 1}`)}`;
  }
  const set = columns.filter((column) => !key.includes(column)).map(equal);
  for (const [column, value] of Object.entries(constants))
    set.push(`${column} = ${value ?? "NULL"}`);
  return `UPDATE ${name} SET ${set.join(", ")} WHERE ${key.map(equal).join(" AND ")}`;
}

/** Inserts so many members, and leaves alone the rows that are there. `table`: one of the three. */
export function insertMembersSql(table: Table, count: number): string {
  return `${insertSql(table, count, constantsOf(table))} ON CONFLICT DO NOTHING`;
}

/** Makes the row that is there what it would be if it had been inserted. */
export function resetMemberSql(table: Table): string {
  const left = members.columns.filter((column) => !table.columns.includes(column));
  const absent = Object.fromEntries(left.map((column) => [column, null]));
  return updateSql(table, { ...absent, ...constantsOf(table) });
}

function constantsOf(table: Table): Readonly<Record<string, number>> {
  return table === newPersons ? constantsOfNewPersons : {};
}

export function selectSql({ name, columns }: Table): string {
  return `SELECT ${columns.join(", ")} FROM ${name}`;
}

function marks(columns: readonly string[]): string {
  return columns.map((column) => parameter(column, "?")).join(", ");
}

function parameter(column: string, mark: string): string {
  return uuidColumns.includes(column) ? `unhex(${mark}, '-')` : mark;
}
