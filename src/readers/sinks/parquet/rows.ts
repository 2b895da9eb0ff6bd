// The columns of the Parquet files, which are a public interface, and the rows of a segment. A row
// is a line, and its fields are separated by unit separators. Ambiguous characters are escaped.
// JSON needs no escapes, because it does not contain raw control characters.

import { Buffer } from "node:buffer";
import { dayMs, dayOf } from "../../../platform/base/day.ts";
import {
  type ColumnType,
  type EventColumn,
  eventColumns,
  personColumn,
  type RejectedLine,
  type SinkRecord,
  textOf,
} from "../sink-records.ts";
import type { SinkBatch, SinkIncident } from "../sink-target.ts";

interface Column {
  readonly name: string;
  readonly type: "text" | "json" | "word" | "time" | "whole" | "boolean";
}

const columns = (type: Column["type"], ...names: string[]): Column[] =>
  names.map((name) => ({ name, type }));

const columnTypes: Readonly<Record<ColumnType, Column["type"]>> = {
  id: "word",
  uuid: "word",
  text: "text",
  time: "time",
  boolean: "boolean",
  object: "json",
  names: "json",
};

const inRow = [...eventColumns, personColumn].filter(({ name }) => name !== "project_id");

type JsonColumn = Extract<EventColumn, { readonly type: "object" | "names" }>;
type PlainColumn = Exclude<EventColumn, JsonColumn>;

function isJson(column: EventColumn): column is JsonColumn {
  return column.type === "object" || column.type === "names";
}

const jsonColumns = inRow.filter(isJson);
const plainColumns = inRow.filter((column): column is PlainColumn => !isJson(column));

const tables = {
  events: [...plainColumns, ...jsonColumns].map(
    ({ name, type }): Column => ({ name, type: columnTypes[type] }),
  ),
  rejected: [
    ...columns("text", "stream"),
    ...columns("whole", "sequence", "line"),
    ...columns("time", "stored_at"),
    ...columns("text", "project_id", "reason", "detail", "record"),
  ],
  incidents: [
    ...columns("time", "noted_at"),
    ...columns("text", "stream"),
    ...columns("whole", "epoch", "sequence"),
    ...columns("text", "kind"),
    ...columns("whole", "messages"),
    ...columns("text", "detail"),
  ],
} as const satisfies Record<string, readonly Column[]>;

export type TableName = keyof typeof tables;

const separator = "\x1f";
const mark = "\x1e";
const escaped = { "\n": "n", "\r": "r", "\0": "0", "\x1f": "f" } as const;
const emptyText = `${mark}-`;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to escape.
const toEscape = /[\0\n\r\x1e\x1f]/;

function fieldOf(text: string): string {
  if (text === "") return emptyText;
  if (!toEscape.test(text)) return text;
  let field = text.replaceAll(mark, `${mark}e`);
  for (const [character, letter] of Object.entries(escaped))
    field = field.replaceAll(character, mark + letter);
  return field;
}

const numbers = { time: "BIGINT", whole: "BIGINT", boolean: "BOOLEAN" } as const;
const fieldTypes = { text: "VARCHAR", json: "VARCHAR", word: "VARCHAR", ...numbers } as const;

export function rowsSql(
  table: TableName,
  { files, rowBytesMax }: { readonly files: readonly string[]; readonly rowBytesMax: number },
): string {
  const fields = tables[table].map(({ name, type }) => `'${name}': '${fieldTypes[type]}'`);
  const lineBytes = rowBytesMax + 1_024;
  const options = [
    `delim=${quoted(separator)}`,
    "quote=''",
    "escape=''",
    "nullstr=''",
    "header=false",
    "auto_detect=false",
    "new_line='\\n'",
    "parallel=false",
    `columns={${fields.join(", ")}}`,
    `max_line_size=${lineBytes}`,
    `buffer_size=${2 * lineBytes + bufferBytes}`,
  ];
  return `SELECT ${tables[table].map(columnSql).join(", ")}
    FROM read_csv([${files.map(quotedName).join(", ")}], ${options.join(", ")})`;
}

const bufferBytes = 8_388_608;
const sqlMark = "chr(30)";

function columnSql({ name, type }: Column): string {
  if (type === "text") return `${unescapeSql(`"${name}"`)} AS "${name}"`;
  if (type === "time") return `make_timestamp_ms("${name}") AT TIME ZONE 'UTC' AS "${name}"`;
  return `"${name}"`;
}

function unescapeSql(field: string): string {
  const replaced = (text: string, letter: string, by: string): string =>
    `replace(${text}, ${sqlMark} || '${letter}', ${by})`;
  let text = replaced(field, "-", "''");
  for (const [character, letter] of Object.entries(escaped))
    text = replaced(text, letter, `chr(${character.charCodeAt(0)})`);
  // This replacement must be the last, because its result may look like another escape.
  text = replaced(text, "e", sqlMark);
  return `CASE WHEN contains(${field}, ${sqlMark}) THEN ${text} ELSE ${field} END`;
}

function quotedName(file: string): string {
  return quoted(file.replace(/[*?[]/g, "[$&]"));
}

export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

interface Run {
  readonly folder: string;
  readonly bytes: number;
  readonly rows: number;
}

export interface BatchRows {
  readonly bytes: Buffer;
  readonly runs: readonly Run[];
  readonly rowBytesMax: number;
}

const bytesAtFirst = 1_048_576;
/** Approximate size of a file with rows. DuckDB reads 2,048 rows together. */
export const rowsFileBytes = 16_777_216;
const characterBytesMax = 3;
const carriageReturn = 0x0d;
const space = 0x20;
const lineFeed = 0x0a;
const separatorByte = separator.charCodeAt(0);

export function rowsOf(
  { events, rejected, incidents }: Pick<SinkBatch, "events" | "rejected" | "incidents">,
  nowMs: number,
): BatchRows {
  const writer = new RowWriter();
  for (const [folder, some] of Map.groupBy(events, eventFolders()))
    writer.run(folder, some, (event) => writer.event(event));
  const asideIn = ({ storedAtMs }: RejectedLine) => folderOf("rejected", storedAtMs);
  for (const [folder, some] of Map.groupBy(rejected, asideIn))
    writer.run(folder, some, (line) => writer.text(rejectedRow(line)));
  writer.run(folderOf("incidents", nowMs), incidents, (incident) =>
    writer.text(incidentRow(incident, nowMs)),
  );
  return writer.take();
}

export function tableOf(folder: string): TableName {
  return folder.slice(0, folder.indexOf("/")) as TableName;
}

function eventFolders(): (event: SinkRecord) => string {
  let last = { projectId: "", day: Number.NaN, name: "" };
  return ({ projectId, storedAtMs }) => {
    const day = Math.floor(storedAtMs / dayMs);
    if (last.projectId !== projectId || last.day !== day) {
      const name = folderOf(`events/project_id=${projectId}`, storedAtMs);
      last = { projectId, day, name };
    }
    return last.name;
  };
}

function folderOf(table: string, ms: number): string {
  return `${table}/day=${dayOf(ms)}`;
}

class RowWriter {
  #buffer = Buffer.allocUnsafe(bytesAtFirst);
  #at = 0;
  #rowBytesMax = 0;
  readonly #runs: Run[] = [];

  run<Row>(folder: string, rows: readonly Row[], write: (row: Row) => void): void {
    let run = { from: this.#at, rows: 0 };
    for (const row of rows) {
      const start = this.#at;
      write(row);
      run.rows++;
      this.#rowBytesMax = Math.max(this.#rowBytesMax, this.#at - start);
      if (this.#at - run.from < rowsFileBytes) continue;
      this.#end(folder, run);
      run = { from: this.#at, rows: 0 };
    }
    if (run.rows > 0) this.#end(folder, run);
  }

  #end(folder: string, { from, rows }: { readonly from: number; readonly rows: number }): void {
    this.#runs.push({ folder, bytes: this.#at - from, rows });
  }

  take(): BatchRows {
    const bytes = this.#buffer.subarray(0, this.#at);
    for (let at = bytes.indexOf(carriageReturn); at >= 0; at = bytes.indexOf(carriageReturn, at))
      bytes[at] = space;
    return { bytes, runs: this.#runs, rowBytesMax: this.#rowBytesMax };
  }

  event(event: SinkRecord): void {
    let head = "";
    for (const column of plainColumns) head += fieldIn(event, column) + separator;
    let jsonBytes = 0;
    for (const { of } of jsonColumns) jsonBytes += of(event)?.length ?? 0;
    this.#require(characterBytesMax * head.length + jsonBytes + jsonColumns.length);
    this.#at += this.#buffer.write(head, this.#at, "utf8");
    for (const { of } of jsonColumns) this.#json(of(event));
    this.#buffer[this.#at - 1] = lineFeed;
  }

  text(row: string): void {
    this.#require(characterBytesMax * row.length);
    this.#at += this.#buffer.write(row, this.#at, "utf8");
  }

  #json(json: Uint8Array | undefined): void {
    if (json !== undefined) {
      this.#buffer.set(json, this.#at);
      this.#at += json.length;
    }
    this.#buffer[this.#at++] = separatorByte;
  }

  #require(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

function fieldIn(event: SinkRecord, { type, isOptional, of }: PlainColumn): string {
  if (type === "boolean") return of(event) ? "1" : "0";
  if (type === "time") {
    const ms = of(event);
    return Number.isNaN(ms) ? "" : String(ms);
  }
  const text = of(event);
  return type !== "text" || (isOptional && text === "") ? text : fieldOf(text);
}

function rejectedRow(line: RejectedLine): string {
  const { stream, sequence, line: index, storedAtMs, projectId, reason, detail, text } = line;
  return rowOf([
    fieldOf(stream),
    String(sequence),
    String(index),
    String(storedAtMs),
    ...[projectId, reason, detail, textOf(text)].map(fieldOf),
  ]);
}

function incidentRow(incident: SinkIncident, nowMs: number): string {
  const { stream, epoch, sequence, kind, messages, detail } = incident;
  const numbers = [String(epoch), String(sequence)];
  return rowOf([
    String(nowMs),
    fieldOf(stream),
    ...numbers,
    fieldOf(kind),
    String(messages),
    fieldOf(detail),
  ]);
}

function rowOf(fields: readonly string[]): string {
  return `${fields.join(separator)}\n`;
}
