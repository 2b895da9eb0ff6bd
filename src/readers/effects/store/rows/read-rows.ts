// Converts rows of either database to the types of the interface. The converters for people are
// written by hand, because the number of these rows is large; the others are generated from the
// tables.

import { indicesOf, type Row, rowReader } from "../../../../platform/base/table.ts";
import type { TrailEntry } from "../../../stream/resume.ts";
import type {
  GroupRow,
  LinePlace,
  MemberRow,
  PersonState,
  Position,
  RejectedRow,
  Stamp,
  StoredOutboxRow,
} from "../../types.ts";
import type { Group, Link, Person } from "../port.ts";
import * as tables from "./tables.ts";

/** Indices of the values in a row of `members`. */
export const memberAt = indicesOf(tables.members);

export const activeIdsOf = rowReader(tables.activeIds);
export const activeDayOf = rowReader(tables.activeDays);
export const largePropertiesOf = rowReader(tables.largeProperties);
export const activityOf = rowReader(tables.activity);
export const appliedStreamOf = rowReader(tables.appliedStreams);
export const groupTypeOf = rowReader(tables.groupTypes);
export const incidentOf = rowReader(tables.incidents);
export const spikeOf = rowReader(tables.spikes);
export const usageDayOf = rowReader(tables.usageDays);
export const shownLinkOf: (row: Row) => Link = rowReader(tables.shownLinks);

export const outboxOf = rowReader(tables.outbox);
const readGroup = rowReader(tables.groups);
const readPosition = rowReader(tables.positions);
const readRejected = rowReader(tables.rejected);
const readShownGroup = rowReader(tables.shownGroups);
const readTrail = rowReader(tables.trail);

/** Converts a row of `members`. The value of `merged_into` must be a distinct id, not a uuid. */
export function memberRowOf(row: Row): MemberRow {
  const first = {
    timeMs: row[memberAt.first_ms] as number,
    rank: row[memberAt.first_rank] as string,
  };
  return {
    projectId: row[memberAt.project_id] as string,
    uuid: row[memberAt.uuid] as string,
    distinctId: row[memberAt.distinct_id] as string,
    first,
    mergedInto: (row[memberAt.merged_into] as string | null) ?? undefined,
    person: row[memberAt.version] === null ? undefined : personStateOf(row, first),
  };
}

function personStateOf(row: Row, first: Stamp): PersonState {
  const firstId = firstIdOf(row);
  return {
    firstId,
    firstUuid: (row[memberAt.first_uuid] ?? row[memberAt.uuid]) as string,
    firstStamp: stampAt(row, memberAt.first_id_ms, memberAt.first_id_rank) ?? first,
    mainId: (row[memberAt.main_id] as string | null) ?? firstId,
    mainStamp: stampAt(row, memberAt.main_ms, memberAt.main_rank),
    known: row[memberAt.known] === 1,
    createdAtMs: row[memberAt.created_at_ms] as number,
    lastSeenAtMs: row[memberAt.last_seen_at_ms] as number,
    idsTotal: row[memberAt.ids_total] as number,
    propertyBytes: row[memberAt.property_bytes] as number,
    version: row[memberAt.version] as number,
    properties: {
      json: (row[memberAt.properties] as string | null) ?? "{}",
      state: (row[memberAt.property_state] as string | null) ?? "",
    },
  };
}

function stampAt(row: Row, ms: number, rank: number): Stamp | undefined {
  const timeMs = row[ms];
  return timeMs === null ? undefined : { timeMs: timeMs as number, rank: row[rank] as string };
}

/** Returns the person's distinct id that was seen first. */
export function firstIdOf(row: Row): string {
  return (row[memberAt.first_id] ?? row[memberAt.distinct_id]) as string;
}

/** Returns the number of ids of a person, from the person's row. */
export function idsTotalOf(row: Row): number {
  return row[memberAt.ids_total] as number;
}

/** Maximum number of ids, and of uuids in `mergedFrom`, that are returned for a person. */
export const shownIdsMax = 100;

/**
 * Converts a row to a person as readers receive it. `ids` starts with the first id, followed by the
 * ids seen next, and has one more than `shownIdsMax` if more exist. Unused for a person with one
 * id.
 */
export function personOf(
  row: Row,
  ids: readonly { readonly id: string; readonly uuid: string }[],
): Person {
  const firstId = firstIdOf(row);
  const isOne = idsTotalOf(row) <= 1;
  return {
    uuid: (row[memberAt.first_uuid] ?? row[memberAt.uuid]) as string,
    mainDistinctId: (row[memberAt.main_id] as string | null) ?? firstId,
    distinctIds: isOne ? [firstId] : ids.slice(0, shownIdsMax).map(({ id }) => id),
    distinctIdsTotal: idsTotalOf(row),
    propertiesJson: (row[memberAt.properties] as string | null) ?? "{}",
    known: row[memberAt.known] === 1,
    createdAtMs: row[memberAt.created_at_ms] as number,
    lastSeenAtMs: row[memberAt.last_seen_at_ms] as number,
    version: row[memberAt.version] as number,
    mergedFrom: ids.slice(1).map(({ uuid }) => uuid),
  };
}

/** Converts a row that consists of the id and the columns of the table. */
export function outboxRowOf([id, ...row]: Row): StoredOutboxRow {
  return { id: id as number, ...outboxOf(row) };
}

export function groupRowOf(row: Row): GroupRow {
  const { properties: json, propertyState: state, ...rest } = readGroup(row);
  return { ...rest, properties: { json, state } };
}

export function shownGroupOf(row: Row): Group {
  const { properties, ...rest } = readShownGroup(row);
  return { ...rest, propertiesJson: properties };
}

export function rejectedOf(row: Row): RejectedRow {
  const { lane, partition, epoch, sequence, line, ...rest } = readRejected(row);
  const place: LinePlace = { lane, partition, epoch, sequence, line };
  return { ...rest, place };
}

/**
 * Converts the rows of positions. `trail` has the entries of all streams, sorted by stream and
 * sequence.
 */
export function positionsOf(read: { rows: readonly Row[]; trail: readonly Row[] }): Position[] {
  const trails = new Map<string, TrailEntry[]>();
  for (const { stream, ...entry } of read.trail.map(readTrail)) {
    const trail = trails.get(stream);
    if (trail === undefined) trails.set(stream, [entry]);
    else trail.push(entry);
  }
  return read.rows.map(readPosition).map(({ duplicatesPrevious, duplicatesCurrent, ...rest }) => ({
    ...rest,
    trail: trails.get(rest.stream) ?? [],
    duplicatesFrom: [duplicatesPrevious, duplicatesCurrent],
  }));
}
