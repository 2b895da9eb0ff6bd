// The calendar day of a time in a time zone.

import { dayMs } from "../platform/base/day.ts";

interface LocalDay {
  /** The day of the calendar, counted from 1970-01-01. */
  readonly day: number;
  /** The start of the day in its zone, in milliseconds since 1970 (UTC). */
  readonly startMs: number;
}

interface Zone {
  readonly format: Intl.DateTimeFormat;
  /** The days that events were in. */
  readonly days: (LocalDay & { readonly endMs: number })[];
}

/** All zones with all their aliases are about 600. */
const zonesMax = 1_024;
const zoneCharactersMax = 64;
/** An offset such as +05:30 is not a name. There are thousands of them. */
const nameForm = /^[A-Za-z][\w/+-]*$/;
/** Maximum number of days in memory per zone. Cookieless events of one time are in at most 6 days. */
const zoneDaysMax = 8;

/** Finding that a name is invalid takes 20 µs. */
const invalidZonesMax = 256;
/** Maximum number of invalid names that are looked up for a request. */
const failedLookupsMax = 64;
/** The time before and after midnight in which a zone may change its clock. */
const aroundMidnightMs = 6 * 3_600_000;

/** Counts the names of a request that were looked up and are invalid. */
export interface ZoneLookups {
  failed: number;
}

/** The zones of events, by their names in lower case. All projects share them: one takes 30 kB. */
const zones = new Map<string, Zone>();
/** The last invalid names, in lower case. */
const invalidZones = new Set<string>();

/**
 * Returns the day of a time in the zone, which is a name of the IANA database. If the name is
 * invalid, the day is in UTC. After too many invalid names of a request, this also applies to the
 * names that are not in memory.
 */
export function localDayOf(ms: number, zoneName: string, lookups: ZoneLookups): LocalDay {
  const zone = zoneOf(zoneName, lookups);
  if (zone === undefined) {
    const day = Math.floor(ms / dayMs);
    return { day, startMs: day * dayMs };
  }
  const { days, format } = zone;
  for (const known of days) if (ms >= known.startMs && ms < known.endMs) return known;
  const offsetMs = offsetMsAt(format, ms);
  const day = Math.floor((ms + offsetMs) / dayMs);
  const startMs = startMsOf(format, day, offsetMs);
  const found = { day, startMs, endMs: startMsOf(format, day + 1, offsetMs) };
  if (days.length >= zoneDaysMax) days.length = 0;
  days.push(found);
  return found;
}

function zoneOf(name: string, lookups: ZoneLookups): Zone | undefined {
  if (!nameForm.test(name) || name.length > zoneCharactersMax) return undefined;
  const key = name.toLowerCase();
  const known = zones.get(key);
  if (known !== undefined) return known;
  if (invalidZones.has(key) || lookups.failed >= failedLookupsMax) return undefined;
  const format = formatOf(name);
  if (format === undefined) {
    lookups.failed++;
    if (invalidZones.size >= invalidZonesMax) invalidZones.clear();
    invalidZones.add(key);
    return undefined;
  }
  if (zones.size >= zonesMax) zones.clear();
  const zone = { format, days: [] };
  zones.set(key, zone);
  return zone;
}

function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  const numeric = "numeric" as const;
  try {
    return new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    });
  } catch {
    return undefined;
  }
}

/**
 * Returns the first moment of a day. `offsetMs` is the offset of the zone at any time of the day
 * before or of this one.
 */
function startMsOf(format: Intl.DateTimeFormat, day: number, offsetMs: number): number {
  const midnightMs = day * dayMs;
  const aboutMs = midnightMs - offsetMs;
  // The clock may be changed near midnight. A day may have its midnight twice, or not at all.
  const beforeMs = offsetMsAt(format, aboutMs - aroundMidnightMs);
  const afterMs = offsetMsAt(format, aboutMs + aroundMidnightMs);
  const [more, less] = [Math.max(beforeMs, afterMs), Math.min(beforeMs, afterMs)];
  const isMidnight = more === less || offsetMsAt(format, midnightMs - more) === more;
  return midnightMs - (isMidnight ? more : less);
}

function offsetMsAt(format: Intl.DateTimeFormat, ms: number): number {
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1_000) * 1_000;
}
