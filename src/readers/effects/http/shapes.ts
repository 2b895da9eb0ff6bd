// The JSON of the HTTP port and of the commands. Properties are copied as text, because JSON.parse
// would change the digits of numbers.

import { setTimeout as delay } from "node:timers/promises";
import type {
  AppliedStream,
  EffectsReader,
  Group,
  Link,
  Person,
  Totals,
  UsageDay,
} from "../store/port.ts";
import { lagMessages, type StreamStatus } from "../streams/lag.ts";
import type { IncidentRow, RejectedRow, SpikeRow } from "../types.ts";

export function personJson(person: Person): string {
  const head = inner({
    uuid: person.uuid,
    main_distinct_id: person.mainDistinctId,
    distinct_ids: person.distinctIds,
    distinct_ids_total: person.distinctIdsTotal,
  });
  const tail = inner({
    known: person.known,
    created_at: iso(person.createdAtMs),
    last_seen_at: iso(person.lastSeenAtMs),
    version: person.version,
    merged_from: person.mergedFrom,
  });
  return `{${head},"properties":${person.propertiesJson},${tail}}`;
}

export function groupJson(group: Group): string {
  const tail = inner({
    created_at: iso(group.createdAtMs),
    updated_at: iso(group.updatedAtMs),
    version: group.version,
  });
  const head = inner({ type: group.type, key: group.key });
  return `{${head},"properties":${group.propertiesJson},${tail}}`;
}

export function linkJson({ a, b, kind, atMs, eventUuid, outcome }: Link): string {
  return JSON.stringify({ a, b, kind, at: iso(atMs), event_uuid: eventUuid, outcome });
}

export function spikeJson(spike: SpikeRow): string {
  const { subject, startedAtMs, endedAtMs, peakPerMinute, baseline, threshold, events } = spike;
  return JSON.stringify({
    subject,
    started_at: iso(startedAtMs),
    ended_at: endedAtMs === undefined ? null : iso(endedAtMs),
    peak_per_minute: peakPerMinute,
    baseline,
    threshold,
    events,
  });
}

export function usageMembers(days: readonly UsageDay[]): string {
  return inner({
    days,
    billable: sumOf(days, "live"),
    historical: sumOf(days, "historical"),
  });
}

export function asOfJson(applied: readonly AppliedStream[]): string {
  const sorted = applied.toSorted((one, other) => (one.stream < other.stream ? -1 : 1));
  return JSON.stringify(
    Object.fromEntries(sorted.map(({ stream, sequence }) => [stream, sequence])),
  );
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function sumOf(days: readonly UsageDay[], lane: UsageDay["lane"]): number {
  return days.reduce((sum, day) => (day.lane === lane ? sum + day.events : sum), 0);
}

function inner(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}

export interface ProcessStatus {
  readonly state: string;
  readonly reasons: readonly string[];
  readonly streams: readonly StreamStatus[];
}

interface StatusRows {
  readonly totals: Totals;
  readonly incidents: readonly IncidentRow[];
  readonly rejected: readonly RejectedRow[];
}

const shownMax = 20;

/** Maximum wait for NATS in ms. It is short, because some clients wait only a second. */
const askMsMax = 500;

export async function withAskedLag(
  status: ProcessStatus,
  ask: (() => Promise<readonly StreamStatus[]>) | undefined,
): Promise<ProcessStatus> {
  const late = delay(askMsMax, undefined, { ref: false });
  const streams = await Promise.race([ask?.(), late]).catch(() => undefined);
  return streams === undefined ? status : { ...status, streams };
}

export async function statusMembers(
  { state, reasons, streams }: ProcessStatus,
  reader: EffectsReader,
): Promise<string> {
  const value = statusValue(streams, await statusRows(reader));
  return JSON.stringify({ state, reasons, ...value }).slice(1, -1);
}

export async function statusRows(reader: EffectsReader): Promise<StatusRows> {
  const [totals, incidents, rejected] = await Promise.all([
    reader.totals(),
    reader.incidents(shownMax),
    reader.rejected(undefined, shownMax),
  ]);
  return { totals, incidents, rejected };
}

export function statusValue(
  streams: readonly StreamStatus[],
  { totals, incidents, rejected }: StatusRows,
): object {
  return {
    streams: streams.map(streamValue),
    totals: totalsValue(totals),
    incidents,
    rejected: rejected.map(rejectedValue),
  };
}

function streamValue(status: StreamStatus): object {
  const { stream, lane, partition, epoch, sequence, lastSequence, lagSeconds } = status;
  return {
    stream,
    lane,
    partition,
    epoch,
    sequence,
    last_sequence: lastSequence ?? null,
    lag_messages: lagMessages(status) ?? null,
    lag_seconds: lagSeconds ?? null,
  };
}

function totalsValue(totals: Totals): object {
  const { persons, groups, openSpikes, rejected, incidents } = totals;
  return { persons, groups, open_spikes: openSpikes, rejected, incidents };
}

function rejectedValue({ projectId, place, atMs, eventUuid, ...rest }: RejectedRow): object {
  const { lane, partition, epoch, sequence, line } = place;
  return {
    project: projectId,
    reason: rest.reason,
    detail: rest.detail,
    at: iso(atMs),
    event_uuid: eventUuid,
    lane,
    partition,
    epoch,
    sequence,
    line,
  };
}
