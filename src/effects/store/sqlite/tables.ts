// The columns of the tables as rows are sent to the writer's thread and read back, and the
// statements that follow from them. Rows go as one flat array of values, because copying many small
// objects from thread to thread takes longer than writing them.

export type Value = string | number | null | Uint8Array;

export interface Table {
  readonly name: string;
  readonly key: readonly string[];
  /** The key's first. */
  readonly columns: readonly string[];
}

function table(name: string, key: string, others: string): Table {
  const keys = key.split(" ");
  return { name, key: keys, columns: [...keys, ...others.split(" ").filter((one) => one !== "")] };
}

/** Sent as text and stored as 16 bytes. */
const uuidColumns: readonly string[] = ["uuid", "merged_into", "first_uuid"];

export const members = table(
  "members",
  "project_id uuid",
  `distinct_id first_ms first_rank merged_into first_id first_uuid first_id_ms first_id_rank \
main_id main_ms main_rank known created_at_ms last_seen_at_ms ids_total property_bytes version \
properties property_state`,
);

/**
 * Rows of `members` that are most of those that come: persons of one id who are written for the
 * first time, and of whom nothing else is known. Few values, because each takes time.
 */
export const newPersons = table(
  "members",
  "project_id uuid",
  "distinct_id first_ms first_rank created_at_ms last_seen_at_ms",
);
/** What `newPersons` leaves out, where it is not null. */
const constantsOfNewPersons = { known: 0, ids_total: 1, property_bytes: 0, version: 1 } as const;

/** Rows of `members` that are merged into another: all that such a row has. */
export const mergedMembers = table(
  "members",
  "project_id uuid",
  "distinct_id first_ms first_rank merged_into",
);

export const groups = table(
  "groups",
  "project_id type key",
  "created_at_ms updated_at_ms property_bytes version properties property_state",
);

export const links = table(
  "person_links",
  "project_id lane partition epoch sequence line",
  "a b kind at_ms event_uuid outcome",
);

export const groupTypes = table("group_types", "project_id type", "");
export const groupMembers = table(
  "group_members",
  "project_id type key distinct_id",
  "first_seen_at_ms",
);
export const usage = table("usage_daily", "project_id day lane class", "events duplicates");
export const activeIds = table("active_ids", "project_id day", "registers estimate");
export const spikes = table(
  "spikes",
  "project_id subject started_at_ms",
  "ended_at_ms peak_per_minute baseline threshold events",
);
export const activity = table("activity", "project_id", "state");
export const positions = table(
  "positions",
  "stream",
  `lane partition epoch created sequence duplicates_previous duplicates_current watermark_ms`,
);
export const trail = table("position_trail", "stream sequence", "message_id stored_at_ms");
export const outbox = table("outbox", "message_id", "subject json");

/** Without a key: appended. */
export const runs = table("runs", "stream", "partition epoch from_sequence to_sequence");
export const rejected = table(
  "rejected",
  "project_id",
  "lane partition epoch sequence line event_uuid reason detail at_ms",
);
export const incidents = table("incidents", "stream", "kind epoch sequence messages detail");

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
