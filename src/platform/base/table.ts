// The description of a database table. The SQL statements and the conversions of rows are derived
// from it.

export type Value = string | number | null | Uint8Array;

export type Row = readonly Value[];

/** The type of a column. In a row, a uuid and JSON are texts, and a boolean is 1 or 0. */
export type ColumnType =
  | "text"
  | "uuid"
  | "integer"
  | "int32"
  | "real"
  | "boolean"
  | "json"
  | "bytes";

export interface Column<Of> {
  readonly type: ColumnType;
  readonly isNullable?: boolean;
  readonly merge?: "sum" | "min";
  readonly of?: Of;
}

type Columns = Readonly<Record<string, Column<unknown>>>;

export interface Table<Types extends Columns = Columns> {
  readonly name: string;
  readonly key: readonly string[];
  readonly columns: readonly string[];
  readonly types: Types;
}

type FieldName<Name extends string> = Name extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<FieldName<Rest>>}`
  : Name;

type Of<One> = One extends Column<infer Type> ? Type : never;

type Fields<Types extends Columns> = {
  readonly [Name in keyof Types & string as FieldName<Name>]: Of<Types[Name]>;
};

export function table<Key extends Columns, Others extends Columns>(
  name: string,
  key: Key,
  others: Others,
): Table<Key & Others> {
  const types = { ...key, ...others };
  return { name, key: Object.keys(key), columns: Object.keys(types), types };
}

export function pick<Types extends Columns, Name extends keyof Types & string>(
  { name, key, types }: Table<Types>,
  columns: readonly Name[],
): Table<Pick<Types, Name>> {
  const picked = Object.fromEntries(columns.map((column) => [column, types[column]]));
  return {
    name,
    key: key.filter((column) => column in picked),
    columns,
    types: picked as Pick<Types, Name>,
  };
}

export function indicesOf<Types extends Columns>({
  columns,
}: Table<Types>): Readonly<Record<keyof Types & string, number>> {
  const indices = Object.fromEntries(columns.map((column, index) => [column, index]));
  return indices as Record<keyof Types & string, number>;
}

export function rowsOf({ columns }: Table, values: readonly Value[]): Row[] {
  const rows: Row[] = [];
  for (let at = 0; at < values.length; at += columns.length)
    rows.push(values.slice(at, at + columns.length));
  return rows;
}

export function rowReader<Types extends Columns>(table: Table<Types>): (row: Row) => Fields<Types> {
  const names = table.columns.map(fieldName);
  return (row) => {
    const fields: Record<string, unknown> = {};
    for (let index = 0; index < names.length; index++)
      fields[names[index]!] = row[index] ?? undefined;
    return fields as Fields<Types>;
  };
}

export function rowWriter<Types extends Columns>(
  table: Table<Types>,
): (row: Fields<Types>, values: Value[]) => void {
  const names = table.columns.map(fieldName) as (keyof Fields<Types>)[];
  return (row, values) => {
    for (const name of names) values.push((row[name] as Value | undefined) ?? null);
  };
}

function fieldName(column: string): string {
  return column.replaceAll(/_(.)/g, (_, first: string) => first.toUpperCase());
}
