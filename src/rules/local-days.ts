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
  last: LocalDay;
}

/** Maximum number of zones in memory. It is more than there are, but clients choose the names. */
const zonesMax = 512;
/**
 * Reading an unknown name takes 20 to 50 µs, so clients that invent names could slow down a batch.
 * After this number of unknown names in a row, only one of 32 is read. The others count as UTC.
 */
const unknownNamesMax = 1_024;
const eventsPerUnknownName = 32;
const zoneCharactersMax = 64;
/** The shortest day is that of a clock change by two hours. */
const shortestDayMs = 22 * 3_600_000;

export class LocalDays {
  readonly #zones = new Map<string, Zone>();
  #unknownNamesLeft = unknownNamesMax;

  /** Returns the day in the zone. If the name of the zone is invalid, the day is in UTC. */
  of(ms: number, zoneName: string): LocalDay {
    const zone = this.#zoneOf(zoneName);
    const sinceStartMs = ms - zone.last.startMs;
    if (sinceStartMs < 0 || sinceStartMs >= shortestDayMs) zone.last = localDay(zone.format, ms);
    return zone.last;
  }

  #zoneOf(name: string): Zone {
    const known = this.#zones.get(name);
    if (known !== undefined) return known;
    if (!this.#mayRead(name)) return this.#zoneOf("UTC");
    const format = formatOf(name);
    const zone =
      format === undefined
        ? this.#zoneOf("UTC")
        : { format, last: { day: 0, startMs: Number.POSITIVE_INFINITY } };
    if (this.#zones.size >= zonesMax) this.#zones.clear();
    this.#zones.set(name, zone);
    return zone;
  }

  #mayRead(name: string): boolean {
    if (name === "UTC") return true;
    if (name.length > zoneCharactersMax) return false;
    this.#unknownNamesLeft += 1 / eventsPerUnknownName;
    if (this.#unknownNamesLeft < 1) return false;
    this.#unknownNamesLeft--;
    return true;
  }
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

function localDay(format: Intl.DateTimeFormat, ms: number): LocalDay {
  const offsetMs = offsetMsAt(format, ms);
  const day = Math.floor((ms + offsetMs) / dayMs);
  const midnightMs = day * dayMs;
  // The clock may be changed between midnight and the event, or at midnight itself.
  const startMs = midnightMs - offsetMs;
  const startOffsetMs = offsetMsAt(format, startMs);
  const nextMs = midnightMs - startOffsetMs;
  const nextOffsetMs = offsetMsAt(format, nextMs);
  return { day, startMs: midnightMs - Math.min(startOffsetMs, nextOffsetMs) };
}

function offsetMsAt(format: Intl.DateTimeFormat, ms: number): number {
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1_000) * 1_000;
}
