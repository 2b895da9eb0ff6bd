// Sends many rows in one statement. Each column is one array literal, which the server expands to
// rows.

import { Buffer } from "node:buffer";
import type { ColumnType, Table, Value } from "../base/table.ts";

/** The server allows at most 1 GB per value. */
const chunkCharsMax = 16 * 1024 * 1024;
const chunkRowsMax = 20_000;

const typeNames: Readonly<Record<ColumnType, string>> = {
  text: "text",
  uuid: "uuid",
  integer: "bigint",
  int32: "bigint",
  real: "double precision",
  boolean: "boolean",
  json: "json",
  bytes: "bytea",
};

export function unnestSql({ columns, types }: Table, name: string, at?: string): string {
  const arrays = columns
    .map((column, index) => `$${index + 1}::${typeNames[types[column]!.type]}[]`)
    .join(", ");
  return at === undefined
    ? `unnest(${arrays}) AS ${name} (${columnsSql(columns)})`
    : `unnest(${arrays}) WITH ORDINALITY AS ${name} (${columnsSql([...columns, at])})`;
}

export function columnsSql(columns: readonly string[], prefix = ""): string {
  return columns.map((column) => `${prefix}"${column}"`).join(", ");
}

export function selectSql({ name, columns }: Table): string {
  return `SELECT ${columnsSql(columns)} FROM ${name}`;
}

/** Columns in `reset` replace the stored value, even if they have a merge rule. */
export function upsertSql(
  { name, key, columns, types }: Table,
  source: string,
  reset: readonly string[] = columns,
): string {
  const merged = {
    sum: (column: string) => `old."${column}" + excluded."${column}"`,
    min: (column: string) => `least(old."${column}", excluded."${column}")`,
    none: (column: string) => `excluded."${column}"`,
  };
  const set = reset
    .filter((column) => !key.includes(column))
    .map((column) => `"${column}" = ${merged[types[column]?.merge ?? "none"](column)}`)
    .join(", ");
  const change = set === "" ? "DO NOTHING" : `DO UPDATE SET ${set}`;
  return `INSERT INTO ${name} AS old (${columnsSql(columns)}) SELECT ${columnsSql(columns)} FROM ${source}
    ON CONFLICT (${columnsSql(key)}) ${change}`;
}

export function* chunksOf(values: readonly Value[], width: number): Generator<string[]> {
  for (let from = 0; from < values.length; ) {
    const end = endOfChunk(values, { from, width });
    yield Array.from({ length: width }, (_, column) =>
      columnOf(values, { from: from + column, end, width }),
    );
    from = end;
  }
}

function endOfChunk(values: readonly Value[], at: { from: number; width: number }): number {
  const last = Math.min(values.length, at.from + chunkRowsMax * at.width);
  let chars = 0;
  for (let index = at.from; index < last; index++) {
    const value = values[index];
    if (typeof value === "string" || value instanceof Uint8Array) chars += value.length;
    if (chars > chunkCharsMax) return index - ((index - at.from) % at.width) + at.width;
  }
  return last;
}

function columnOf(
  values: readonly Value[],
  { from, end, width }: { readonly from: number; readonly end: number; readonly width: number },
): string {
  let text = "";
  let hasValues = false;
  for (let index = from; index < end; index += width) {
    const value = values[index] ?? null;
    hasValues ||= value !== null;
    text += text === "" ? itemOf(value) : `,${itemOf(value)}`;
  }
  return hasValues ? `{${text}}` : "{}";
}

export function arrayOf(values: readonly Value[]): string {
  return `{${values.map(itemOf).join(",")}}`;
}

function itemOf(value: Value): string {
  if (value === null) return "NULL";
  if (typeof value === "number") return String(value);
  if (typeof value !== "string")
    return `"\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("hex")}"`;
  return value.includes('"') || value.includes("\\")
    ? `"${value.replaceAll(/["\\]/g, "\\$&")}"`
    : `"${value}"`;
}
