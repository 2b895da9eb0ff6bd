// The tables in PostgreSQL, as numbered steps. They are an interface that people query, so a step
// that was released is never changed: a change is one more step. Tables and columns are those of
// the store in SQLite. Times are milliseconds since the epoch, with a readable column beside each
// in all tables but the largest, which has views. Texts sort by their bytes.

export const schemaName = "penstock_effects";
/** Where a rebuild builds the tables that take the place of the others. */
export const rebuiltSchemaName = "penstock_effects_rebuilt";

const text = 'text COLLATE "C"';

/** A column `<name>_ms`, and `<name>` as a timestamptz. */
function time(name: string, nullable = false): string {
  const ms = `${name}_ms`;
  return `${ms} bigint${nullable ? "" : " NOT NULL"},
    ${name} timestamptz GENERATED ALWAYS AS (to_timestamp(${ms} / 1000.0::float8)) STORED`;
}

const place = `lane ${text} NOT NULL, partition integer NOT NULL, epoch integer NOT NULL,
    sequence bigint NOT NULL, line integer NOT NULL`;

// One row for each distinct id that was ever seen. Its uuid is computed from the id, so that one
// index finds a row by either. In a row without merged_into, which is a person: no first_id, it is
// the row's own; no main_id, it is the first one. json keeps every digit as it was sent;
// jsonb would not.
const people = `
  CREATE TABLE members (
    project_id ${text} NOT NULL,
    uuid uuid NOT NULL,
    distinct_id ${text} NOT NULL,
    first_ms bigint NOT NULL,
    first_rank ${text} NOT NULL,
    merged_into uuid,
    first_id ${text},
    first_uuid uuid,
    first_id_ms bigint,
    first_id_rank ${text},
    main_id ${text},
    main_ms bigint,
    main_rank ${text},
    known boolean,
    created_at_ms bigint,
    last_seen_at_ms bigint,
    ids_total integer,
    property_bytes integer,
    version bigint,
    properties json,
    property_state ${text},
    PRIMARY KEY (project_id, uuid)
  ) WITH (fillfactor = 85);
  CREATE INDEX members_merged ON members (project_id, merged_into) WHERE merged_into IS NOT NULL;

  CREATE VIEW persons AS
    SELECT project_id, coalesce(first_uuid, uuid) AS uuid,
      coalesce(main_id, first_id, distinct_id) AS main_distinct_id,
      ids_total AS distinct_ids_total, coalesce(properties, '{}')::jsonb AS properties, known,
      to_timestamp(created_at_ms / 1000.0::float8) AS created_at,
      to_timestamp(last_seen_at_ms / 1000.0::float8) AS last_seen_at,
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
      SELECT shown FROM up WHERE merged_into IS NULL
    ) AS person_uuid, uuid AS own_uuid,
      to_timestamp(first_ms / 1000.0::float8) AS first_seen_at
    FROM members AS m;

  CREATE VIEW person_uuids AS
    SELECT project_id, own_uuid AS uuid, person_uuid, distinct_id FROM person_ids;

  CREATE TABLE person_links (
    project_id ${text} NOT NULL, ${place},
    a ${text} NOT NULL,
    b ${text} NOT NULL,
    kind ${text} NOT NULL,
    ${time("at")},
    event_uuid ${text} NOT NULL,
    outcome ${text} NOT NULL,
    PRIMARY KEY (project_id, lane, partition, epoch, sequence, line)
  );
  -- The same link is asked for again and again: each outcome of it is listed once.
  CREATE UNIQUE INDEX person_links_once ON person_links (project_id, a, b, kind, outcome);
  CREATE INDEX person_links_b ON person_links (project_id, b);`;

const groups = `
  CREATE TABLE groups (
    project_id ${text} NOT NULL,
    type ${text} NOT NULL,
    key ${text} NOT NULL,
    ${time("created_at")},
    ${time("updated_at")},
    property_bytes integer NOT NULL,
    version bigint NOT NULL,
    properties json NOT NULL,
    property_state ${text} NOT NULL,
    PRIMARY KEY (project_id, type, key)
  );

  CREATE TABLE group_types (
    project_id ${text} NOT NULL,
    type ${text} NOT NULL,
    PRIMARY KEY (project_id, type)
  );

  CREATE TABLE group_members (
    project_id ${text} NOT NULL,
    type ${text} NOT NULL,
    key ${text} NOT NULL,
    distinct_id ${text} NOT NULL,
    ${time("first_seen_at")},
    PRIMARY KEY (project_id, type, key, distinct_id)
  );`;

const counts = `
  CREATE TABLE usage_daily (
    project_id ${text} NOT NULL,
    day ${text} NOT NULL,
    lane ${text} NOT NULL,
    class ${text} NOT NULL,
    events bigint NOT NULL,
    duplicates bigint NOT NULL,
    PRIMARY KEY (project_id, day, lane, class)
  );

  CREATE TABLE active_ids (
    project_id ${text} NOT NULL,
    day ${text} NOT NULL,
    registers bytea NOT NULL,
    estimate double precision NOT NULL,
    PRIMARY KEY (project_id, day)
  );

  CREATE TABLE spikes (
    project_id ${text} NOT NULL,
    subject ${text} NOT NULL,
    ${time("started_at")},
    ${time("ended_at", true)},
    peak_per_minute double precision NOT NULL,
    baseline double precision NOT NULL,
    threshold double precision NOT NULL,
    events bigint NOT NULL,
    PRIMARY KEY (project_id, subject, started_at_ms)
  );
  CREATE INDEX spikes_started ON spikes (project_id, started_at_ms, subject);
  CREATE INDEX spikes_open ON spikes (project_id) WHERE ended_at_ms IS NULL;

  CREATE TABLE activity (
    project_id ${text} NOT NULL PRIMARY KEY,
    state ${text} NOT NULL
  );

  CREATE TABLE rejected (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id ${text} NOT NULL, ${place},
    event_uuid ${text} NOT NULL,
    reason ${text} NOT NULL,
    detail ${text} NOT NULL,
    ${time("at")}
  );
  CREATE INDEX rejected_project ON rejected (project_id, id);

  -- Of each project the newest rejections are kept. This is how many there ever were.
  CREATE TABLE rejected_totals (
    project_id ${text} NOT NULL PRIMARY KEY,
    total bigint NOT NULL
  );`;

const progress = `
  CREATE TABLE positions (
    stream ${text} NOT NULL PRIMARY KEY,
    lane ${text} NOT NULL,
    partition integer NOT NULL,
    epoch integer NOT NULL,
    created ${text} NOT NULL,
    sequence bigint NOT NULL,
    duplicates_previous bigint NOT NULL,
    duplicates_current bigint NOT NULL,
    ${time("watermark")}
  );

  CREATE TABLE position_trail (
    stream ${text} NOT NULL,
    sequence bigint NOT NULL,
    message_id ${text} NOT NULL,
    stored_at_ms bigint NOT NULL,
    PRIMARY KEY (stream, sequence)
  );

  CREATE TABLE runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream ${text} NOT NULL,
    partition integer NOT NULL,
    epoch integer NOT NULL,
    from_sequence bigint NOT NULL,
    to_sequence bigint NOT NULL
  );
  CREATE INDEX runs_partition ON runs (partition, id);

  CREATE TABLE incidents (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream ${text} NOT NULL,
    kind ${text} NOT NULL,
    epoch integer NOT NULL,
    sequence bigint NOT NULL,
    messages bigint NOT NULL,
    detail ${text} NOT NULL
  );

  CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id ${text} NOT NULL UNIQUE,
    subject ${text} NOT NULL,
    "json" ${text} NOT NULL
  );

  -- One row each: the number of the last commit, and what a count would take a scan for.
  CREATE TABLE writer (last_commit bigint NOT NULL) WITH (fillfactor = 10);
  INSERT INTO writer VALUES (0);
  CREATE TABLE totals (
    persons bigint NOT NULL,
    groups bigint NOT NULL,
    rejected bigint NOT NULL,
    incidents bigint NOT NULL
  ) WITH (fillfactor = 10);
  INSERT INTO totals VALUES (0, 0, 0, 0);`;

// How much of a project is of people and groups with more than 64 KiB.
const large = `
  CREATE TABLE large_properties (
    project_id ${text} NOT NULL PRIMARY KEY,
    bytes bigint NOT NULL
  );
  INSERT INTO large_properties
    SELECT project_id, sum(property_bytes) FROM (
      SELECT project_id, property_bytes FROM members WHERE property_bytes > 65536
      UNION ALL
      SELECT project_id, property_bytes FROM groups WHERE property_bytes > 65536
    ) AS counted
    GROUP BY project_id;`;

// Whose streams they are. One row, once a writer has begun.
const installation = `
  CREATE TABLE installation (subject_prefix ${text} NOT NULL);`;

// Whose event it was, by which an erasure finds the row. Older rows have none.
const rejectedIds = `
  ALTER TABLE rejected ADD COLUMN distinct_id ${text};`;

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
