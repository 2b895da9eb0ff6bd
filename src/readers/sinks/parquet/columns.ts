// The columns of the Parquet files, a public interface, and the text form of a row in a segment. A
// row is a line of fields between unit separators. JSON has no raw control characters and is
// copied. In other texts, ambiguous characters are escaped.

import type { FieldType } from "../../../records/fields.ts";
import { type EventColumn, eventColumns, personColumn } from "../sink-records.ts";

interface Column {
  readonly name: string;
  /** Only `text` may need an escape. A `time` is milliseconds since 1970. */
  readonly type: "text" | "json" | "word" | "time" | "whole" | "boolean";
}

const columns = (type: Column["type"], ...names: string[]): Column[] =>
  names.map((name) => ({ name, type }));

const columnTypes: Readonly<Record<FieldType, Column["type"]>> = {
  id: "word",
  uuid: "word",
  text: "text",
  time: "time",
  boolean: "boolean",
  object: "json",
  names: "json",
};

/** The path has the project. JSON comes last in a row. */
const inRow = [...eventColumns, personColumn].filter(({ name }) => name !== "project_id");

type JsonColumn = Extract<EventColumn, { readonly type: "object" | "names" }>;
export type PlainColumn = Exclude<EventColumn, JsonColumn>;

function isJson(column: EventColumn): column is JsonColumn {
  return column.type === "object" || column.type === "names";
}

export const jsonColumns = inRow.filter(isJson);
export const plainColumns = inRow.filter((column): column is PlainColumn => !isJson(column));

/** Columns in the order of the fields in a row. */
export const tables = {
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

export const separator = "\x1f";
const mark = "\x1e";
/** Letter after the escape character for each character. */
const escaped = { "\n": "n", "\r": "r", "\0": "0", "\x1f": "f" } as const;
const emptyText = `${mark}-`;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to escape.
const toEscape = /[\0\n\r\x1e\x1f]/;

export function fieldOf(text: string): string {
  if (text === "") return emptyText;
  if (!toEscape.test(text)) return text;
  let field = text.replaceAll(mark, `${mark}e`);
  for (const [character, letter] of Object.entries(escaped))
    field = field.replaceAll(character, mark + letter);
  return field;
}

const sqlTypes = { text: "VARCHAR", json: "VARCHAR", word: "VARCHAR" } as const;
const fieldTypes = { ...sqlTypes, time: "BIGINT", whole: "BIGINT", boolean: "BOOLEAN" } as const;

/** `rowBytesMax` is the length of the longest row. */
export function rowsSql(
  table: TableName,
  { files, rowBytesMax }: { readonly files: readonly string[]; readonly rowBytesMax: number },
): string {
  const fields = tables[table].map(({ name, type }) => `'${name}': '${fieldTypes[type]}'`);
  const lineBytes = rowBytesMax + 1_024;
  const options = [
    ...[`delim=${quoted(separator)}`, "quote=''", "escape=''", "nullstr=''", "header=false"],
    ...["auto_detect=false", "new_line='\\n'", "parallel=false", `columns={${fields.join(", ")}}`],
    // A buffer must hold at least two lines.
    ...[`max_line_size=${lineBytes}`, `buffer_size=${2 * lineBytes + bufferBytes}`],
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
  // The last replacement, because its result may look like another escape.
  text = replaced(text, "e", sqlMark);
  return `CASE WHEN contains(${field}, ${sqlMark}) THEN ${text} ELSE ${field} END`;
}

/** DuckDB reads a file name as a pattern. */
function quotedName(file: string): string {
  return quoted(file.replace(/[*?[]/g, "[$&]"));
}

export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
