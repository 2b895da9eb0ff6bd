// Converts rows of either database to objects. The converters for persons are written by hand,
// because these rows are frequent.

import { StoreError } from "../../../../platform/base/store-error.ts";
import { indicesOf, type Row, rowReader } from "../../../../platform/base/table.ts";
import type { TrailEntry } from "../../../stream/resume.ts";
import { personUuid } from "../../people/person-uuid.ts";
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
import type { Group, Link, Person, ProjectIds, ReachedStream } from "../port.ts";
import * as tables from "./tables.ts";

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
export const reachedStreamOf: (row: Row) => ReachedStream = rowReader(tables.reachedStreams);
export const shownLinkOf: (row: Row) => Link = rowReader(tables.shownLinks);

export const outboxOf = rowReader(tables.outbox);
const readGroup = rowReader(tables.groups);
const readPosition = rowReader(tables.positions);
const readRejected = rowReader(tables.rejected);
const readShownGroup = rowReader(tables.shownGroups);
const readTrail = rowReader(tables.trail);

/** Converts a row. Its `merged_into` must be a distinct id, not a uuid. */
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

export function firstIdOf(row: Row): string {
  return (row[memberAt.first_id] ?? row[memberAt.distinct_id]) as string;
}

export function idsTotalOf(row: Row): number {
  return row[memberAt.ids_total] as number;
}

export const shownIdsMax = 100;

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

/** Converts rows to positions. The rows of `trail` must be sorted by stream and sequence. */
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

interface Step {
  readonly projectId: string;
  readonly uuid: string;
  readonly at: number;
}

export type StepRow = readonly [step: number, firstUuid: string | null, mergedInto: string | null];

/**
 * Finds the uuids of the persons of many ids in several steps. In each step, the database returns
 * for each id either the uuid or the row to read next.
 */
export class UuidWalk {
  readonly shown: (string | null)[] = [];
  #steps: Step[] = [];
  #isFirst = true;

  constructor(ids: readonly ProjectIds[]) {
    for (const { projectId, distinctIds } of ids) {
      for (const distinctId of distinctIds) {
        const at = this.shown.length;
        this.#steps.push({ projectId, uuid: personUuid(projectId, distinctId), at });
        this.shown.push(null);
      }
    }
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  take(rows: Iterable<StepRow>): void {
    const next: Step[] = [];
    let found = 0;
    for (const [index, firstUuid, mergedInto] of rows) {
      const step = this.#steps[index]!;
      found++;
      if (mergedInto === null) this.shown[step.at] = firstUuid ?? step.uuid;
      else next.push({ ...step, uuid: mergedInto });
    }
    if (!this.#isFirst && found < this.#steps.length)
      throw new StoreError(
        "cannot look up people: the database is damaged: a row points to one that does not exist",
      );
    this.#isFirst = false;
    this.#steps = next;
  }
}
