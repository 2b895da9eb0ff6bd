// The tables of both databases: their columns, in the order in which the values of a row are
// written and read. Rows go as one flat array of values, because copying many small objects from
// thread to thread takes longer than writing them. The statements are each database's own.

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
export const constantsOfNewPersons = {
  known: 0,
  ids_total: 1,
  property_bytes: 0,
  version: 1,
} as const;

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
