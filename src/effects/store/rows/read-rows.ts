// Rows as they come from the database, made into what the port promises.

import type { Lane } from "../../../base/types.ts";
import { fromColumns } from "../../people/property-columns.ts";
import type {
  GroupRow,
  IncidentRow,
  LinePlace,
  MemberRow,
  PersonState,
  Position,
  RejectedRow,
  Run,
  SpikeRow,
  Stamp,
  StoredOutboxRow,
  TrailEntry,
} from "../../types.ts";
import type { Value } from "./tables.ts";

export type Row = readonly Value[];

/** `merged_into` has to be the distinct id here, not the uuid. */
export function memberOf(row: Row): MemberRow {
  const first = { timeMs: row[3] as number, rank: row[4] as string };
  const mergedInto = row[5] as string | null;
  return {
    projectId: row[0] as string,
    uuid: row[1] as string,
    distinctId: row[2] as string,
    first,
    mergedInto: mergedInto ?? undefined,
    person: row[18] === null ? undefined : personOf(row, first),
  };
}

function personOf(row: Row, first: Stamp): PersonState {
  const firstId = (row[6] ?? row[2]) as string;
  return {
    firstId,
    firstUuid: (row[7] ?? row[1]) as string,
    firstStamp: row[8] === null ? first : { timeMs: row[8] as number, rank: row[9] as string },
    mainId: (row[10] as string | null) ?? firstId,
    mainStamp:
      row[11] === null ? undefined : { timeMs: row[11] as number, rank: row[12] as string },
    known: row[13] === 1,
    createdAtMs: row[14] as number,
    lastSeenAtMs: row[15] as number,
    idsTotal: row[16] as number,
    propertyBytes: row[17] as number,
    version: row[18] as number,
    properties: fromColumns({
      json: (row[19] as string | null) ?? "{}",
      state: (row[20] as string | null) ?? "",
    }),
  };
}

export function outboxRowOf(row: Row): StoredOutboxRow {
  return {
    id: row[0] as number,
    messageId: row[1] as string,
    subject: row[2] as string,
    json: row[3] as string,
  };
}

export function groupOf(row: Row): GroupRow {
  return {
    projectId: row[0] as string,
    type: row[1] as string,
    key: row[2] as string,
    createdAtMs: row[3] as number,
    updatedAtMs: row[4] as number,
    propertyBytes: row[5] as number,
    version: row[6] as number,
    properties: fromColumns({ json: row[7] as string, state: row[8] as string }),
  };
}

export function spikeOf(row: Row): SpikeRow {
  return {
    projectId: row[0] as string,
    subject: row[1] as string,
    startedAtMs: row[2] as number,
    endedAtMs: (row[3] as number | null) ?? undefined,
    peakPerMinute: row[4] as number,
    baseline: row[5] as number,
    threshold: row[6] as number,
    events: row[7] as number,
  };
}

function positionOf(row: Row, trail: Position["trail"]): Position {
  return {
    stream: row[0] as string,
    lane: row[1] as Lane,
    partition: row[2] as number,
    epoch: row[3] as number,
    created: row[4] as string,
    sequence: row[5] as number,
    trail,
    duplicatesFrom: [row[6] as number, row[7] as number],
    watermarkMs: row[8] as number,
  };
}

export function rejectedOf(row: Row): RejectedRow {
  const place: LinePlace = {
    lane: row[1] as Lane,
    partition: row[2] as number,
    epoch: row[3] as number,
    sequence: row[4] as number,
    line: row[5] as number,
  };
  return {
    projectId: row[0] as string,
    place,
    eventUuid: row[6] as string,
    reason: row[7] as RejectedRow["reason"],
    detail: row[8] as string,
    atMs: row[9] as number,
  };
}

export function incidentOf(row: Row): IncidentRow {
  return {
    stream: row[0] as string,
    kind: row[1] as IncidentRow["kind"],
    epoch: row[2] as number,
    sequence: row[3] as number,
    messages: row[4] as number,
    detail: row[5] as string,
  };
}

/** `trail`: of all streams, sorted by stream and sequence. */
export function positionsOf(read: { rows: readonly Row[]; trail: readonly Row[] }): Position[] {
  const trails = new Map<string, TrailEntry[]>();
  for (const [stream, sequence, messageId, storedAtMs] of read.trail) {
    const entry: TrailEntry = {
      sequence: sequence as number,
      messageId: messageId as string,
      storedAtMs: storedAtMs as number,
    };
    const trail = trails.get(stream as string);
    if (trail === undefined) trails.set(stream as string, [entry]);
    else trail.push(entry);
  }
  return read.rows.map((row) => positionOf(row, trails.get(row[0] as string) ?? []));
}

export function runOf(row: readonly Value[]): Run {
  return {
    stream: row[0] as string,
    partition: row[1] as number,
    epoch: row[2] as number,
    from: row[3] as number,
    to: row[4] as number,
  };
}
