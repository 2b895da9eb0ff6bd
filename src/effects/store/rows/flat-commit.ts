// A commit as it is sent to the writer's thread: per table one flat array of values, row after row
// in the order of tables.ts. Copying that takes a fraction of what copying the rows' objects takes.

import { personUuid } from "../../people/person-uuid.ts";
import { toColumns } from "../../people/property-columns.ts";
import type {
  Commit,
  GroupRow,
  LinePlace,
  LinkRow,
  MemberRow,
  PersonState,
  Position,
  Stamp,
} from "../../types.ts";
import { type TrailChanges, trailChanges } from "../trail-changes.ts";
import type { Value } from "./tables.ts";

/** More rows than a commit has; times 2^32 it is a whole number still. */
const rowsMax = 2 ** 20;

export interface FlatCommit {
  readonly after: number;
  readonly number: number;
  readonly positions: Value[];
  /** Entries of trails that go (stream, sequence), and that come. */
  readonly trailRemoved: Value[];
  readonly trailAdded: Value[];
  readonly runs: Value[];
  readonly newPersons: Value[];
  /** Other persons who are written for the first time, so hardly one is in the store already. */
  readonly addedPersons: Value[];
  readonly members: Value[];
  readonly mergedMembers: Value[];
  readonly links: Value[];
  readonly groups: Value[];
  readonly groupTypes: Value[];
  readonly groupMembers: Value[];
  readonly rejected: Value[];
  readonly usage: Value[];
  readonly activeIds: Value[];
  readonly spikes: Value[];
  readonly activity: Value[];
  readonly incidents: Value[];
  readonly outbox: Value[];
}

/** `before`: the trails as they are stored, by stream. */
export function flatCommit(
  commit: Commit,
  before: ReadonlyMap<string, Position["trail"]>,
): FlatCommit {
  const trails = commit.positions.map(({ stream, trail }): [string, TrailChanges] => [
    stream,
    trailChanges(before.get(stream) ?? [], trail),
  ]);
  return {
    after: commit.after,
    number: commit.number,
    positions: flat(commit.positions, positionValues),
    trailRemoved: trails.flatMap(([stream, { removed }]) =>
      removed.flatMap((sequence) => [stream, sequence]),
    ),
    trailAdded: trails.flatMap(([stream, { added }]) =>
      added.flatMap((one) => [stream, one.sequence, one.messageId, one.storedAtMs]),
    ),
    runs: flat(
      commit.runs,
      (row) => [row.stream, row.partition, row.epoch, row.from, row.to], //
    ),
    ...flatMembers(commit.members),
    links: flatLinks(commit.links),
    groups: flat(commit.groups, groupValues),
    groupTypes: flat(commit.groupTypes, (row) => [row.projectId, row.type]),
    groupMembers: flat(
      commit.groupMembers,
      (row) => [row.projectId, row.type, row.key, row.distinctId, row.firstSeenAtMs], //
    ),
    rejected: flat(commit.rejected, (row) =>
      [row.projectId, ...placeValues(row.place), row.eventUuid].concat(
        [row.reason, row.detail, row.atMs], //
      ),
    ),
    usage: flat(
      commit.usage,
      (row) => [row.projectId, row.day, row.lane, row.class, row.events, row.duplicates], //
    ),
    activeIds: flat(
      commit.activeIds,
      (row) => [row.projectId, row.day, row.registers, row.estimate], //
    ),
    spikes: flat(commit.spikes, (row) =>
      [row.projectId, row.subject, row.startedAtMs, row.endedAtMs ?? null].concat(
        [row.peakPerMinute, row.baseline, row.threshold, row.events], //
      ),
    ),
    activity: flat(commit.activity, (row) => [row.projectId, row.state]),
    incidents: flat(
      commit.incidents,
      (row) => [row.stream, row.kind, row.epoch, row.sequence, row.messages, row.detail], //
    ),
    outbox: flat(commit.outbox, (row) => [row.messageId, row.subject, row.json]),
  };
}

function flat<Row>(rows: readonly Row[], valuesOf: (row: Row) => Value[]): Value[] {
  const values: Value[] = [];
  for (const row of rows) values.push(...valuesOf(row));
  return values;
}

function flatLinks(rows: readonly LinkRow[]): Value[] {
  const values: Value[] = [];
  for (const { projectId, place, a, b, kind, atMs, eventUuid, outcome } of rows) {
    values.push(projectId, place.lane, place.partition, place.epoch, place.sequence, place.line);
    values.push(a, b, kind, atMs, eventUuid, outcome);
  }
  return values;
}

type FlatMembers = Pick<FlatCommit, "newPersons" | "addedPersons" | "members" | "mergedMembers">;

function flatMembers(rows: readonly MemberRow[]): FlatMembers {
  const flat: FlatMembers = { newPersons: [], addedPersons: [], members: [], mergedMembers: [] };
  const { newPersons, mergedMembers } = flat;
  for (const at of inOrderOfUuids(rows)) {
    const row = rows[at]!;
    const { projectId, uuid, distinctId, first, mergedInto, person } = row;
    if (person === undefined) {
      mergedMembers.push(projectId, uuid, distinctId, first.timeMs, first.rank);
      mergedMembers.push(mergedInto === undefined ? null : personUuid(projectId, mergedInto));
    } else if (isNewPerson(row)) {
      newPersons.push(projectId, uuid, distinctId, first.timeMs, first.rank);
      newPersons.push(person.createdAtMs, person.lastSeenAtMs);
    } else {
      const values = person.version === 1 ? flat.addedPersons : flat.members;
      values.push(projectId, uuid, distinctId, first.timeMs, first.rank);
      values.push(mergedInto === undefined ? null : personUuid(projectId, mergedInto));
      pushPerson(values, row, person);
    }
  }
  return flat;
}

/**
 * The rows' places in the order of their uuids, by the first 32 bits: that of the index, so that
 * neighbours are written to one page, one after another. As numbers, because comparing so many
 * texts takes longer than writing them.
 */
function inOrderOfUuids(rows: readonly MemberRow[]): number[] {
  const keys = new Float64Array(rows.length);
  // Reads the digits before the first hyphen.
  for (const [at, { uuid }] of rows.entries()) keys[at] = Number.parseInt(uuid, 16) * rowsMax + at;
  return Array.from(keys.sort(), (key) => key % rowsMax);
}

/** Whether all there is to say about the person is in the columns of new persons. */
function isNewPerson(row: MemberRow): row is MemberRow & { person: PersonState } {
  const { distinctId, first, mergedInto, person } = row;
  return (
    person !== undefined &&
    mergedInto === undefined &&
    person.version === 1 &&
    person.idsTotal === 1 &&
    person.properties.size === 0 &&
    person.propertyBytes === 0 &&
    !person.known &&
    person.mainStamp === undefined &&
    person.mainId === distinctId &&
    person.firstId === distinctId &&
    person.firstUuid === row.uuid &&
    isSameStamp(person.firstStamp, first)
  );
}

function pushPerson(values: Value[], row: MemberRow, person: PersonState): void {
  const { firstId, firstUuid, firstStamp, mainId, mainStamp, known } = person;
  const isOwn = isSameStamp(firstStamp, row.first);
  values.push(firstId === row.distinctId ? null : firstId);
  values.push(firstUuid === row.uuid ? null : firstUuid);
  values.push(isOwn ? null : firstStamp.timeMs, isOwn ? null : firstStamp.rank);
  values.push(mainId === firstId ? null : mainId);
  values.push(mainStamp?.timeMs ?? null, mainStamp?.rank ?? null, known ? 1 : 0);
  values.push(person.createdAtMs, person.lastSeenAtMs, person.idsTotal, person.propertyBytes);
  values.push(person.version);
  if (person.properties.size === 0) values.push(null, null);
  else {
    const { json, state } = toColumns(person.properties);
    values.push(json, state);
  }
}

function isSameStamp(a: Stamp, b: Stamp): boolean {
  return a.timeMs === b.timeMs && a.rank === b.rank;
}

function groupValues(row: GroupRow): Value[] {
  const { json, state } = toColumns(row.properties);
  return [
    ...[row.projectId, row.type, row.key, row.createdAtMs, row.updatedAtMs],
    ...[row.propertyBytes, row.version, json, state],
  ];
}

function placeValues({ lane, partition, epoch, sequence, line }: LinePlace): Value[] {
  return [lane, partition, epoch, sequence, line];
}

function positionValues(row: Position): Value[] {
  return [
    ...[row.stream, row.lane, row.partition, row.epoch, row.created, row.sequence],
    ...[...row.duplicatesFrom, row.watermarkMs],
  ];
}
