import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import {
  fromColumns,
  noColumns,
  toColumns,
} from "../../../../src/readers/effects/people/property-columns.ts";
import { rankOf } from "../../../../src/readers/effects/stamp.ts";
import type { Page } from "../../../../src/readers/effects/store/port.ts";
import type {
  Commit,
  GroupRow,
  LinePlace,
  LinkRow,
  MemberRow,
  PersonState,
  Position,
  PropertyColumns,
  RejectedRow,
  Stamp,
} from "../../../../src/readers/effects/types.ts";

export const project = "proj_a";
export const page: Page = { after: undefined, limit: 100, bytesMax: 1e6 };
export const wholeYear = { from: "2026-01-01", to: "2026-12-31" };
export const noon = Date.UTC(2026, 10, 22, 12);

export function commitOf(after: number, parts: Partial<Commit>): Commit {
  return {
    after,
    number: after + 1,
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
    ...parts,
  };
}

function linePlaceAt(sequence: number, line = 0): LinePlace {
  return { lane: "live", partition: 0, epoch: 1, sequence, line };
}

export function stampOf(n: number): Stamp {
  return { timeMs: noon + n, rank: rankOf(linePlaceAt(n)) };
}

export function propertiesOf(values: Readonly<Record<string, string>>): PropertyColumns {
  return toColumns(
    new Map(
      Object.entries(values).map(([name, json]) => [
        name,
        { write: { stamp: stampOf(1), json }, once: undefined },
      ]),
    ),
  );
}

/** If both have a name, the second value is used. */
export function joined(one: PropertyColumns, other: PropertyColumns): PropertyColumns {
  return toColumns(new Map([...fromColumns(one)!, ...fromColumns(other)!]));
}

interface PersonOptions extends Partial<PersonState> {
  readonly projectId?: string;
  readonly n?: number;
}

export function personRow(distinctId: string, options: PersonOptions = {}): MemberRow {
  const { projectId = project, n = 1, ...rest } = options;
  const uuid = personUuid(projectId, distinctId);
  const first = stampOf(n);
  const person: PersonState = {
    firstId: distinctId,
    firstStamp: first,
    firstUuid: uuid,
    mainId: distinctId,
    mainStamp: undefined,
    known: false,
    createdAtMs: noon + n,
    lastSeenAtMs: noon,
    idsTotal: 1,
    properties: noColumns,
    propertyBytes: 0,
    version: 1,
    ...rest,
  };
  return { projectId, distinctId, uuid, first, mergedInto: undefined, person };
}

/** An id whose person was merged into the person of another id. */
export function mergedRow(
  distinctId: string,
  mergedInto: string,
  { projectId = project, n = 1 }: { projectId?: string; n?: number } = {},
): MemberRow {
  const uuid = personUuid(projectId, distinctId);
  return { projectId, distinctId, uuid, first: stampOf(n), mergedInto, person: undefined };
}

export function groupRow(key: string, parts: Partial<GroupRow> = {}): GroupRow {
  return {
    projectId: project,
    type: "company",
    key,
    createdAtMs: noon,
    updatedAtMs: noon + 1,
    properties: noColumns,
    propertyBytes: 0,
    version: 1,
    ...parts,
  };
}

export function linkRow(n: number, a: string, b: string, parts: Partial<LinkRow> = {}): LinkRow {
  return {
    projectId: project,
    place: linePlaceAt(n),
    a,
    b,
    kind: "identify",
    atMs: noon + n,
    eventUuid: eventUuid(n),
    outcome: "merged",
    ...parts,
  };
}

export function rejectedRow(n: number, parts: Partial<RejectedRow> = {}): RejectedRow {
  return {
    projectId: project,
    place: linePlaceAt(n, 3),
    eventUuid: eventUuid(n),
    atMs: noon + n,
    reason: "too_deep",
    detail: `$set.deep ${n}`,
    distinctId: undefined,
    ...parts,
  };
}

export function positionRow(sequence: number, parts: Partial<Position> = {}): Position {
  return {
    stream: "PENSTOCK_LIVE_0",
    lane: "live",
    partition: 0,
    epoch: 1,
    created: "2026-11-22T10:00:00.123456789Z",
    sequence,
    trail: [{ sequence, messageId: `m-${sequence}`, storedAtMs: noon + sequence }],
    duplicatesFrom: [1, 2],
    watermarkMs: noon + sequence,
    ...parts,
  };
}

export function eventUuid(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

export function byId<Row extends { distinctId: string }>(rows: readonly Row[]): Row[] {
  return [...rows].sort((a, b) => (a.distinctId < b.distinctId ? -1 : 1));
}
