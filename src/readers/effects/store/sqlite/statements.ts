import { Buffer } from "node:buffer";
import type { Table, Value } from "../../../../platform/base/table.ts";
import { barePersons, constantsOfBarePersons, members } from "../rows/tables.ts";

export function insertSql(
  table: Table,
  count = 1,
  constants: Readonly<Record<string, number>> = {},
): string {
  const { name, columns } = table;
  const names = [...columns, ...Object.keys(constants)].join(", ");
  const row = `(${[marks(table), ...Object.values(constants)].join(", ")})`;
  const rows = Array.from({ length: count }, () => row).join(", ");
  return `INSERT INTO ${name} (${names}) VALUES ${rows}`;
}

export function upsertSql(table: Table, count = 1): string {
  const { key, columns, types } = table;
  const rest = columns.filter((column) => !key.includes(column));
  const merged = {
    sum: (column: string) => `${column} + excluded.${column}`,
    min: (column: string) => `min(${column}, excluded.${column})`,
    none: (column: string) => `excluded.${column}`,
  };
  const set = rest.map((column) => `${column} = ${merged[types[column]?.merge ?? "none"](column)}`);
  const change = rest.length === 0 ? "DO NOTHING" : `DO UPDATE SET ${set.join(", ")}`;
  return `${insertSql(table, count)} ON CONFLICT (${table.key.join(", ")}) ${change}`;
}

export function updateSql(
  table: Table,
  constants: Readonly<Record<string, number | null>> = {},
): string {
  const { name, key, columns } = table;
  function equal(column: string): string {
    return `${column} = ${parameter(table, column, `?${columns.indexOf(column) + 1}`)}`;
  }
  const set = columns.filter((column) => !key.includes(column)).map(equal);
  for (const [column, value] of Object.entries(constants))
    set.push(`${column} = ${value ?? "NULL"}`);
  return `UPDATE ${name} SET ${set.join(", ")} WHERE ${key.map(equal).join(" AND ")}`;
}

export function insertMembersSql(table: Table, count: number): string {
  return `${insertSql(table, count, constantsOf(table))} ON CONFLICT DO NOTHING`;
}

export function resetMemberSql(table: Table): string {
  const left = members.columns.filter((column) => !table.columns.includes(column));
  const absent = Object.fromEntries(left.map((column) => [column, null]));
  return updateSql(table, { ...absent, ...constantsOf(table) });
}

function constantsOf(table: Table): Readonly<Record<string, number>> {
  return table === barePersons ? constantsOfBarePersons : {};
}

export function selectSql({ name, columns }: Table): string {
  return `SELECT ${columns.join(", ")} FROM ${name}`;
}

function marks(table: Table): string {
  return table.columns.map((column) => parameter(table, column, "?")).join(", ");
}

function parameter({ types }: Table, column: string, mark: string): string {
  return types[column]?.type === "uuid" ? `unhex(${mark}, '-')` : mark;
}

/** Converts a uuid to bytes. If the text is not a uuid, the result does not match any row. */
export function uuidBytes(uuid: string): Uint8Array {
  return Buffer.from(uuid.replaceAll("-", ""), "hex");
}

export function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
  const [a, b, c, d] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return `${a}-${b}-${c}-${d}-${hex.slice(20)}`;
}

export function uuidTextsOf({ columns, types }: Table): (row: Value[]) => Value[] {
  const isUuid = columns.map((column) => types[column]?.type === "uuid");
  const indices = [...isUuid.keys()].filter((index) => isUuid[index]);
  return (row) => {
    for (const index of indices) {
      const value = row[index];
      if (value instanceof Uint8Array) row[index] = uuidText(value);
    }
    return row;
  };
}

export function numbered(sql: string): string {
  return sql.replaceAll(/\$(\d+)/g, "?$1");
}
