// The tables in SQLite, as numbered steps. They are an interface that people query, so a step that
// was released is never changed: a change is one more step. Times are milliseconds since the epoch.
// The views have them as text too, and so have the tables of which few rows are written: in a
// column that is computed and takes no room. Texts sort by their bytes.

/** `2026-11-22T10:00:00.000Z` of a column of milliseconds. */
function timeText(ms: string): string {
  const rest = `((${ms} % 1000) + 1000) % 1000`;
  const seconds = `strftime('%Y-%m-%dT%H:%M:%S', (${ms} - ${rest}) / 1000, 'unixepoch')`;
  return `${seconds} || printf('.%03dZ', ${rest})`;
}

/** A column `<name>_ms`, and `<name>` as text. Writing a row computes the text, in 3 µs. */
function time(name: string, nullable = false): string {
  return `${name}_ms INTEGER${nullable ? "" : " NOT NULL"},
    ${name} TEXT AS (${timeText(`${name}_ms`)})`;
}

/** A uuid of 16 bytes as text. */
function uuidText(bytes: string): string {
  const hex = `lower(hex(${bytes}))`;
  const parts = ["1, 8", "9, 4", "13, 4", "17, 4", "21, 12"];
  return parts.map((part) => `substr(${hex}, ${part})`).join(" || '-' || ");
}

const place = `lane TEXT NOT NULL, partition INTEGER NOT NULL, epoch INTEGER NOT NULL,
    sequence INTEGER NOT NULL, line INTEGER NOT NULL`;

// One row for each distinct id that was ever seen. It is found by its own uuid, which is computed
// from the id, so that one index finds a row by either. Rows lie in the order in which they came:
// an index of little more than uuids is all that new ids, which come in no order, are spread over.
// In a row without `merged_into`, which is a person: no `first_id`, it is the row's own; no
// `main_id`, it is the first one.
const people = `
  CREATE TABLE members (
    id INTEGER PRIMARY KEY,
    project_id TEXT NOT NULL,
    uuid BLOB NOT NULL,
    distinct_id TEXT NOT NULL,
    first_ms INTEGER NOT NULL,
    first_rank TEXT NOT NULL,
    merged_into BLOB,
    first_id TEXT,
    first_uuid BLOB,
    first_id_ms INTEGER,
    first_id_rank TEXT,
    main_id TEXT,
    main_ms INTEGER,
    main_rank TEXT,
    known INTEGER,
    created_at_ms INTEGER,
    last_seen_at_ms INTEGER,
    ids_total INTEGER,
    property_bytes INTEGER,
    version INTEGER,
    properties TEXT,
    property_state TEXT,
    UNIQUE (project_id, uuid)
  ) STRICT;
  CREATE INDEX members_merged ON members (project_id, merged_into)
    WHERE merged_into IS NOT NULL;

  CREATE VIEW persons AS
    SELECT project_id, ${uuidText("coalesce(first_uuid, uuid)")} AS uuid,
      coalesce(main_id, first_id, distinct_id) AS main_distinct_id,
      ids_total AS distinct_ids_total, coalesce(properties, '{}') AS properties, known,
      ${timeText("created_at_ms")} AS created_at, ${timeText("last_seen_at_ms")} AS last_seen_at,
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
      SELECT ${uuidText("shown")} FROM up WHERE merged_into IS NULL
    ) AS person_uuid, ${uuidText("uuid")} AS own_uuid,
      ${timeText("first_ms")} AS first_seen_at
    FROM members AS m;

  CREATE VIEW person_uuids AS
    SELECT project_id, own_uuid AS uuid, person_uuid, distinct_id FROM person_ids;

  CREATE TABLE person_links (
    project_id TEXT NOT NULL, ${place},
    a TEXT NOT NULL,
    b TEXT NOT NULL,
    kind TEXT NOT NULL,
    ${time("at")},
    event_uuid TEXT NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (project_id, lane, partition, epoch, sequence, line)
  ) STRICT, WITHOUT ROWID;
  -- The same link is asked for again and again: each outcome of it is listed once.
  CREATE UNIQUE INDEX person_links_once ON person_links (project_id, a, b, kind, outcome);
  CREATE INDEX person_links_b ON person_links (project_id, b);`;

const groups = `
  CREATE TABLE groups (
    project_id TEXT NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    ${time("created_at")},
    ${time("updated_at")},
    property_bytes INTEGER NOT NULL,
    version INTEGER NOT NULL,
    properties TEXT NOT NULL,
    property_state TEXT NOT NULL,
    PRIMARY KEY (project_id, type, key)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE group_types (
    project_id TEXT NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (project_id, type)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE group_members (
    project_id TEXT NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    distinct_id TEXT NOT NULL,
    first_seen_at_ms INTEGER NOT NULL,
    PRIMARY KEY (project_id, type, key, distinct_id)
  ) STRICT, WITHOUT ROWID;`;

const counts = `
  CREATE TABLE usage_daily (
    project_id TEXT NOT NULL,
    day TEXT NOT NULL,
    lane TEXT NOT NULL,
    class TEXT NOT NULL,
    events INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    PRIMARY KEY (project_id, day, lane, class)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE active_ids (
    project_id TEXT NOT NULL,
    day TEXT NOT NULL,
    registers BLOB NOT NULL,
    estimate REAL NOT NULL,
    PRIMARY KEY (project_id, day)
  ) STRICT;

  CREATE TABLE spikes (
    project_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    ${time("started_at")},
    ${time("ended_at", true)},
    peak_per_minute REAL NOT NULL,
    baseline REAL NOT NULL,
    threshold REAL NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (project_id, subject, started_at_ms)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX spikes_started ON spikes (project_id, started_at_ms, subject);
  CREATE INDEX spikes_open ON spikes (project_id) WHERE ended_at_ms IS NULL;

  CREATE TABLE activity (
    project_id TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL
  ) STRICT;

  -- Ids go on where rows were deleted.
  CREATE TABLE rejected (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id TEXT NOT NULL, ${place},
    event_uuid TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    ${time("at")}
  ) STRICT;
  CREATE INDEX rejected_project ON rejected (project_id, id);

  -- Of each project the newest rejections are kept. This is how many there ever were.
  CREATE TABLE rejected_totals (
    project_id TEXT NOT NULL PRIMARY KEY,
    total INTEGER NOT NULL
  ) STRICT;`;

const progress = `
  CREATE TABLE positions (
    stream TEXT NOT NULL PRIMARY KEY,
    lane TEXT NOT NULL,
    partition INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    created TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    duplicates_previous INTEGER NOT NULL,
    duplicates_current INTEGER NOT NULL,
    ${time("watermark")}
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE position_trail (
    stream TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    stored_at_ms INTEGER NOT NULL,
    PRIMARY KEY (stream, sequence)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    partition INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    from_sequence INTEGER NOT NULL,
    to_sequence INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX runs_partition ON runs (partition, id);

  CREATE TABLE incidents (
    id INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    kind TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    detail TEXT NOT NULL
  ) STRICT;

  CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    json TEXT NOT NULL
  ) STRICT;

  -- One row each: the number of the last commit, and what a count would take a scan for.
  CREATE TABLE writer (last_commit INTEGER NOT NULL) STRICT;
  INSERT INTO writer VALUES (0);
  CREATE TABLE totals (persons INTEGER NOT NULL, groups INTEGER NOT NULL) STRICT;
  INSERT INTO totals VALUES (0, 0);`;

// How much of a project is of people and groups with more than 64 KiB.
const large = `
  CREATE TABLE large_properties (
    project_id TEXT NOT NULL PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO large_properties
    SELECT project_id, sum(property_bytes) FROM (
      SELECT project_id, property_bytes FROM members WHERE property_bytes > 65536
      UNION ALL
      SELECT project_id, property_bytes FROM groups WHERE property_bytes > 65536
    ) AS counted
    GROUP BY project_id;`;

// Whose streams they are. One row, once a writer has begun.
const installation = `
  CREATE TABLE installation (subject_prefix TEXT NOT NULL) STRICT;`;

// Whose event it was, by which an erasure finds the row. Older rows have none.
const rejectedIds = `
  ALTER TABLE rejected ADD COLUMN distinct_id TEXT;`;

// The order in which streams took turns is no longer recorded.
const withoutRuns = "DROP TABLE IF EXISTS runs;";

/** Step n brings a database from version n to n + 1. */
export const steps: readonly string[] = [
  people + groups + counts + progress,
  large,
  installation,
  rejectedIds,
  withoutRuns,
];
