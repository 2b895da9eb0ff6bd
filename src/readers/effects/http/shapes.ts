// The JSON of the HTTP port and the commands. Properties are copied as text, because JSON.parse
// would change the digits of numbers.

import type { AppliedStream, Group, Link, Person, UsageDay } from "../store/port.ts";
import type { SpikeRow } from "../types.ts";

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
    days: days.map(({ day, lane, class: usageClass, events, duplicates }) => ({
      ...{ day, lane, class: usageClass, events, duplicates },
    })),
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
