// Converts a commit to one flat array of values per table, because sending arrays to the SQLite
// thread is faster than sending objects. The code for persons and links is written by hand, because
// their rows are frequent.

import { rowWriter, type Table, type Value } from "../../../../platform/base/table.ts";
import { personUuid } from "../../people/person-uuid.ts";
import type {
  Commit,
  GroupRow,
  LinkRow,
  MemberRow,
  PersonState,
  Position,
  Stamp,
} from "../../types.ts";
import * as tables from "./tables.ts";

const rowsMax = 2 ** 20;

export const upserted = {
  groupTypes: tables.groupTypes,
  groupMembers: tables.groupMembers,
  largeProperties: tables.largeProperties,
  usage: tables.usage,
  activeIds: tables.activeIds,
  spikes: tables.spikes,
  activity: tables.activity,
  positions: tables.positions,
  trailAdded: tables.trail,
  outbox: tables.outbox,
} as const satisfies Readonly<Record<string, Table>>;
export const upsertedLists = Object.keys(upserted) as readonly (keyof typeof upserted)[];

export interface FlatCommit extends Readonly<Record<keyof typeof upserted, Value[]>> {
  readonly after: number;
  readonly number: number;
  readonly trailRemoved: Value[];
  readonly barePersons: Value[];
  readonly newPersons: Value[];
  readonly members: Value[];
  readonly mergedMembers: Value[];
  readonly links: Value[];
  readonly groups: Value[];
  readonly rejected: Value[];
  readonly incidents: Value[];
}

const writeActiveIds = rowWriter(tables.activeIds);
const writeActivity = rowWriter(tables.activity);
const writeGroup = rowWriter(tables.groups);
const writeGroupMember = rowWriter(tables.groupMembers);
const writeGroupType = rowWriter(tables.groupTypes);
const writeIncident = rowWriter(tables.incidents);
const writeLargeProperties = rowWriter(tables.largeProperties);
const writeOutbox = rowWriter(tables.outbox);
const writePosition = rowWriter(tables.positions);
const writeRejected = rowWriter(tables.rejected);
const writeSpike = rowWriter(tables.spikes);
const writeTrail = rowWriter(tables.trail);
const writeUsage = rowWriter(tables.usage);

export function flatCommit(
  commit: Commit,
  before: ReadonlyMap<string, Position["trail"]>,
): FlatCommit {
  return {
    after: commit.after,
    number: commit.number,
    positions: flat(commit.positions, pushPosition),
    ...flatTrails(commit.positions, before),
    ...flatMembers(commit.members),
    links: flat(commit.links, pushLink),
    groups: flat(commit.groups, pushGroup),
    groupTypes: flat(commit.groupTypes, writeGroupType),
    groupMembers: flat(commit.groupMembers, writeGroupMember),
    largeProperties: flat(commit.largeProperties, writeLargeProperties),
    rejected: flat(commit.rejected, ({ place, ...row }, values) =>
      writeRejected({ ...row, ...place }, values),
    ),
    usage: flat(commit.usage, writeUsage),
    activeIds: flat(commit.activeIds, writeActiveIds),
    spikes: flat(commit.spikes, writeSpike),
    activity: flat(commit.activity, writeActivity),
    incidents: flat(commit.incidents, writeIncident),
    outbox: flat(commit.outbox, writeOutbox),
  };
}

function flat<One>(rows: readonly One[], push: (row: One, values: Value[]) => void): Value[] {
  const values: Value[] = [];
  for (const row of rows) push(row, values);
  return values;
}

function flatTrails(
  positions: readonly Position[],
  before: ReadonlyMap<string, Position["trail"]>,
): Pick<FlatCommit, "trailRemoved" | "trailAdded"> {
  const [trailRemoved, trailAdded]: [Value[], Value[]] = [[], []];
  for (const { stream, trail } of positions) {
    const { removed, added } = trailChanges(before.get(stream) ?? [], trail);
    for (const sequence of removed) trailRemoved.push(stream, sequence);
    for (const entry of added) writeTrail({ stream, ...entry }, trailAdded);
  }
  return { trailRemoved, trailAdded };
}

type FlatMembers = Pick<FlatCommit, "barePersons" | "newPersons" | "members" | "mergedMembers">;

function flatMembers(rows: readonly MemberRow[]): FlatMembers {
  const flat: FlatMembers = { barePersons: [], newPersons: [], members: [], mergedMembers: [] };
  const { barePersons, mergedMembers } = flat;
  for (const row of rows) {
    const { projectId, uuid, distinctId, first, mergedInto, person } = row;
    if (person === undefined) {
      mergedMembers.push(projectId, uuid, distinctId, first.timeMs, first.rank);
      mergedMembers.push(mergedInto === undefined ? null : personUuid(projectId, mergedInto));
    } else if (isBarePerson(row)) {
      barePersons.push(projectId, uuid, distinctId, first.timeMs, first.rank);
      barePersons.push(person.createdAtMs, person.lastSeenAtMs);
    } else {
      const values = person.version === 1 ? flat.newPersons : flat.members;
      values.push(projectId, uuid, distinctId, first.timeMs, first.rank);
      values.push(mergedInto === undefined ? null : personUuid(projectId, mergedInto));
      pushPerson(values, row, person);
    }
  }
  return flat;
}

/**
 * Sorts the rows by the first 32 bits of their uuids, like the index, so that rows of the same page
 * are written together.
 */
function inOrderOfUuids(rows: readonly MemberRow[]): MemberRow[] {
  const keys = new Float64Array(rows.length);
  for (const [at, { uuid }] of rows.entries()) keys[at] = Number.parseInt(uuid, 16) * rowsMax + at;
  return Array.from(keys.sort(), (key) => rows[key % rowsMax]!);
}

function isBarePerson(row: MemberRow): row is MemberRow & { person: PersonState } {
  const { distinctId, first, mergedInto, person } = row;
  return (
    person !== undefined &&
    mergedInto === undefined &&
    person.version === 1 &&
    person.idsTotal === 1 &&
    person.properties.state === "" &&
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
  const { json, state } = person.properties;
  if (state === "") values.push(null, null);
  else values.push(json, state);
}

function isSameStamp(a: Stamp, b: Stamp): boolean {
  return a.timeMs === b.timeMs && a.rank === b.rank;
}

function pushLink(row: LinkRow, values: Value[]): void {
  const { projectId, place, a, b, kind, atMs, eventUuid, outcome } = row;
  values.push(projectId, place.lane, place.partition, place.epoch, place.sequence, place.line);
  values.push(a, b, kind, atMs, eventUuid, outcome);
}

function pushGroup({ properties, ...row }: GroupRow, values: Value[]): void {
  const { json, state } = properties;
  writeGroup({ ...row, properties: json, propertyState: state }, values);
}

function pushPosition({ duplicatesFrom, ...row }: Position, values: Value[]): void {
  const [duplicatesPrevious, duplicatesCurrent] = duplicatesFrom;
  writePosition({ ...row, duplicatesPrevious, duplicatesCurrent }, values);
}

const pieceCharsMax = 2_097_152;

export const noRows: Omit<Commit, "after" | "number" | "isPart"> = {
  positions: [],
  frames: { live: 0, historical: 0 },
  members: [],
  links: [],
  groups: [],
  groupTypes: [],
  groupMembers: [],
  largeProperties: [],
  rejected: [],
  usage: [],
  activeIds: [],
  spikes: [],
  activity: [],
  incidents: [],
  outbox: [],
};

const longLists = ["members", "groups", "links", "groupMembers", "rejected"] as const;

/**
 * Splits a commit into smaller commits, because converting a whole commit would block the event
 * loop. Each has at most `rowsMax` rows of a kind. All except the last have `isPart`.
 */
export function* piecesOf(commit: Commit, rowsMax: number): Generator<Commit> {
  const { after, number } = commit;
  const last = { ...commit, members: inOrderOfUuids(commit.members) };
  for (const list of longLists) {
    for (;;) {
      const count = rowsOfPiece(last[list], rowsMax);
      if (count === last[list].length) break;
      const rows = last[list].slice(0, count);
      Object.assign(last, { [list]: last[list].slice(count) });
      yield { ...noRows, after, number, isPart: true, [list]: rows };
    }
  }
  yield last;
}

function rowsOfPiece(rows: Commit[(typeof longLists)[number]], rowsMax: number): number {
  let chars = 0;
  let count = 0;
  for (; count < rows.length && count < rowsMax; count++) {
    const row = rows[count]!;
    const properties =
      "person" in row ? row.person?.properties : "properties" in row ? row.properties : undefined;
    chars += properties === undefined ? 0 : properties.json.length + properties.state.length;
    if (chars > pieceCharsMax && count > 0) break;
  }
  return count;
}

type Trail = Position["trail"];

interface TrailChanges {
  readonly removed: readonly number[];
  readonly added: Trail;
}

/**
 * Returns the difference between two trails in ascending order. A trail has up to 1,000 entries, so
 * only the difference is written.
 */
export function trailChanges(before: Trail, after: Trail): TrailChanges {
  const removed: number[] = [];
  const added: Trail[number][] = [];
  let at = 0;
  for (const entry of after) {
    while (at < before.length && before[at]!.sequence < entry.sequence)
      removed.push(before[at++]!.sequence);
    const old = before[at];
    if (old?.sequence !== entry.sequence) added.push(entry);
    else {
      if (old.messageId !== entry.messageId) added.push(entry);
      at++;
    }
  }
  while (at < before.length) removed.push(before[at++]!.sequence);
  return { removed, added };
}
