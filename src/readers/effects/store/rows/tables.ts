// The tables of both databases. The schema is generated from them. The values of a row are written
// and read in the order of the columns.

import type { Lane } from "../../../../platform/base/lane.ts";
import { type Column, pick, table } from "../../../../platform/base/table.ts";
import type { IncidentKind } from "../../../stream/resume.ts";
import type { LinkKind, LinkOutcome, RejectedReason, UsageClass } from "../../types.ts";

const text: Column<string> = { type: "text" };
const uuid: Column<string> = { type: "uuid" };
const integer: Column<number> = { type: "integer" };
const int32: Column<number> = { type: "int32" };
const sum: Column<number> = { type: "integer", merge: "sum" };
const oldest: Column<number> = { type: "integer", merge: "min" };
const real: Column<number> = { type: "real" };
const bytes: Column<Uint8Array> = { type: "bytes" };
const json: Column<string> = { type: "json" };
const boolean: Column<number> = { type: "boolean" };

function word<Word extends string>(): Column<Word> {
  return { type: "text" };
}

function orNull<Of>({ type }: Column<Of>): Column<Of | undefined> {
  return { type, isNullable: true };
}

const place = {
  lane: word<Lane>(),
  partition: int32,
  epoch: int32,
  sequence: integer,
  line: int32,
} as const;

export const placeColumns: readonly string[] = Object.keys(place);

export const members = table(
  "members",
  { project_id: text, uuid },
  {
    distinct_id: text,
    first_ms: integer,
    first_rank: text,
    merged_into: orNull(uuid),
    // In a merged row, this column and the following columns are null. In the row of a person, null
    // stands for the row's own value; in `main_id`, it stands for the first id.
    first_id: orNull(text),
    first_uuid: orNull(uuid),
    first_id_ms: orNull(integer),
    first_id_rank: orNull(text),
    main_id: orNull(text),
    main_ms: orNull(integer),
    main_rank: orNull(text),
    known: orNull(boolean),
    created_at_ms: orNull(integer),
    last_seen_at_ms: orNull(integer),
    ids_total: orNull(int32),
    property_bytes: orNull(int32),
    version: orNull(integer),
    properties: orNull(json),
    property_state: orNull(text),
  },
);

const newMember = ["project_id", "uuid", "distinct_id", "first_ms", "first_rank"] as const;
/**
 * The columns of a new person with one id. These rows are the most frequent, so they have few
 * columns, and the other columns have constant values.
 */
export const barePersons = pick(members, [...newMember, "created_at_ms", "last_seen_at_ms"]);
export const constantsOfBarePersons = {
  known: 0,
  ids_total: 1,
  property_bytes: 0,
  version: 1,
} as const;

export const mergedMembers = pick(members, [...newMember, "merged_into"]);

export const dumpedPersons = pick(members, [
  "project_id",
  "uuid",
  "distinct_id",
  "first_id",
  "first_uuid",
  "main_id",
  "known",
  "created_at_ms",
  "last_seen_at_ms",
  "ids_total",
  "properties",
]);

export const groups = table(
  "groups",
  { project_id: text, type: text, key: text },
  {
    created_at_ms: integer,
    updated_at_ms: integer,
    property_bytes: int32,
    version: integer,
    properties: json,
    property_state: text,
  },
);
export const shownGroups = pick(groups, [
  "type",
  "key",
  "properties",
  "created_at_ms",
  "updated_at_ms",
  "version",
]);

export const links = table(
  "person_links",
  { project_id: text, ...place },
  {
    a: text,
    b: text,
    kind: word<LinkKind>(),
    at_ms: integer,
    event_uuid: text,
    outcome: word<LinkOutcome>(),
  },
);
export const shownLinks = pick(links, ["a", "b", "kind", "at_ms", "event_uuid", "outcome"]);

export const groupTypes = table("group_types", { project_id: text, type: text }, {});
export const groupMembers = table(
  "group_members",
  { project_id: text, type: text, key: text, distinct_id: text },
  { first_seen_at_ms: oldest },
);

export const largeProperties = table("large_properties", { project_id: text }, { bytes: integer });

export const usage = table(
  "usage_daily",
  { project_id: text, day: text, lane: word<Lane>(), class: word<UsageClass>() },
  { events: sum, duplicates: sum },
);
export const usageDays = pick(usage, ["day", "lane", "class", "events", "duplicates"]);

export const activeIds = table(
  "active_ids",
  { project_id: text, day: text },
  { registers: bytes, estimate: real },
);
export const activeDays = pick(activeIds, ["day", "estimate"]);

export const spikes = table(
  "spikes",
  { project_id: text, subject: text, started_at_ms: integer },
  {
    ended_at_ms: orNull(integer),
    peak_per_minute: real,
    baseline: real,
    threshold: real,
    events: integer,
  },
);
export const activity = table("activity", { project_id: text }, { state: text });

export const positions = table(
  "positions",
  { stream: text },
  {
    lane: word<Lane>(),
    partition: int32,
    epoch: int32,
    created: text,
    sequence: integer,
    duplicates_previous: integer,
    duplicates_current: integer,
    watermark_ms: integer,
  },
);
export const appliedStreams = pick(positions, [
  "stream",
  "lane",
  "partition",
  "epoch",
  "sequence",
  "watermark_ms",
]);
export const reachedStreams = table(
  "positions",
  { stream: text },
  { epoch: int32, created: text, sequence: integer, message_id: orNull(text) },
);
export const trail = table(
  "position_trail",
  { stream: text, sequence: integer },
  { message_id: text, stored_at_ms: integer },
);

export const outbox = table("outbox", { message_id: text }, { subject: text, json: text });

export const rejectedTotals = table("rejected_totals", { project_id: text }, { total: integer });

export const rejected = table(
  "rejected",
  { project_id: text },
  {
    ...place,
    event_uuid: text,
    reason: word<RejectedReason>(),
    detail: text,
    at_ms: integer,
    distinct_id: orNull(text),
  },
);
export const incidents = table(
  "incidents",
  { stream: text },
  {
    kind: word<IncidentKind>(),
    epoch: int32,
    sequence: integer,
    messages: integer,
    detail: text,
  },
);

export const tablesOfProjects = [
  members,
  links,
  groups,
  groupTypes,
  groupMembers,
  largeProperties,
  usage,
  activeIds,
  spikes,
  activity,
  rejected,
  rejectedTotals,
] as const;
