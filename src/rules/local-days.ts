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
/** Maximum number of days in memory per zone. Cookieless events of one time are in at most 6 days. */
const zoneDaysMax = 8;

/**
 * The zones of events, by their names in lower case. All projects share them, because a zone takes
 * 30 kB. Invalid names are not stored, because clients choose them.
 */
const zones = new Map<string, Zone>();

/**
 * Returns the day of a time in the zone, which is a name of the IANA database. If the name is
 * invalid, the day is in UTC.
 */
export function localDayOf(ms: number, zoneName: string): LocalDay {
  const zone = zoneOf(zoneName);
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

function zoneOf(name: string): Zone | undefined {
  // An offset such as +05:30 is not a name. There are thousands of them.
  if (!/^[A-Za-z]/.test(name) || name.length > zoneCharactersMax) return undefined;
  const key = name.toLowerCase();
  const known = zones.get(key);
  if (known !== undefined) return known;
  const format = formatOf(name);
  if (format === undefined) return undefined;
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

/** `offsetMs` is the offset of the zone at a time near the day. */
function startMsOf(format: Intl.DateTimeFormat, day: number, offsetMs: number): number {
  const midnightMs = day * dayMs;
  // The clock may be changed between midnight and that time, or at midnight itself.
  const startOffsetMs = offsetMsAt(format, midnightMs - offsetMs);
  const nextOffsetMs = offsetMsAt(format, midnightMs - startOffsetMs);
  return midnightMs - Math.min(startOffsetMs, nextOffsetMs);
}

function offsetMsAt(format: Intl.DateTimeFormat, ms: number): number {
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1_000) * 1_000;
}
