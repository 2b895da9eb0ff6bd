// Reads event times in other forms than the usual one of ISO 8601: those that PostHog reads too and
// that mean one moment to every reader. Not among them: a time without a date, a date without a
// year, and forms in which some read the day first and others the month (`05.06.2026`). Called only
// where timestamp.ts found no time: a few patterns over a short text. Must not consult the clock or
// the machine's zone.

import type { Buffer } from "node:buffer";
import { Ascii } from "../base/ascii.ts";
import { storedMsMax, storedMsMin } from "./timestamp.ts";

/**
 * No form has more characters: the longest is like `September 30, 2026 at 11:59:59.123456789 PM
 * +00:00`. Each character may be escaped as \uXXXX.
 */
const charsMax = 64;
const tokenBytesMax = 6 * charsMax + 2;

const minuteMs = 60_000;
const secondMs = 1_000;

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const monthNames = [
  ...["january", "february", "march", "april", "may", "june", "july"],
  ...["august", "september", "october", "november", "december"],
];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/**
 * The zones that RFC 2822 (4.3) defines, in hours from UTC. Other names of zones are not read: most
 * mean more than one zone, as IST does, and CST outside of mail.
 */
const zoneHours: ReadonlyMap<string, number> = new Map([
  ...["z", "ut", "utc", "gmt"].map((name) => [name, 0] as const),
  ...([
    ["edt", -4],
    ["est", -5],
    ["cdt", -5],
    ["cst", -6],
    ["mdt", -6],
    ["mst", -7],
    ["pdt", -7],
    ["pst", -8],
  ] as const),
]);

const year = String.raw`(?<year>\d{4})`;
const anyYear = String.raw`(?<year>\d{4}|\d\d)`;
const day = String.raw`(?<day>\d{1,2})`;
const number = String.raw`(?<month>\d{1,2})`;
const name = "(?<month>[a-z]{3,9})";
const zone = String.raw`(?:\s*(?<zone>[a-z]{1,3}|[+-]\d\d(?::?\d\d)?))?`;
const time = String.raw`(?<hour>\d{1,2}):(?<minute>\d\d)(?::(?<second>\d\d)(?:[.,](?<fraction>\d{1,12}))?)?(?:\s*(?<half>[ap]m))?${zone}`;
const timeOfDay = String.raw`(?:,?\s+(?:at\s+)?${time})?`;

/** The forms, told apart by how the text begins: no text matches two of them. */
const forms: readonly RegExp[] = [
  // 2026-11-22 07:00:00 UTC, 2026/11/22 07:00, 2026.11.22
  String.raw`${year}(?<mark>[-/.])${number}\k<mark>${day}${timeOfDay}`,
  // 2026-Nov-22
  `${year}-${name}-${day}${timeOfDay}`,
  // 11/22/2026 07:00 AM
  `${number}/${day}/${anyYear}${timeOfDay}`,
  // Sun, 22 Nov 2026 07:00:00 GMT
  String.raw`(?:(?<weekday>[a-z]{3}),?\s+)?${day}\s+${name}\.?,?\s+${anyYear}${timeOfDay}`,
  // November 22, 2026 at 7:00 AM
  String.raw`${name}\.?\s+${day},?\s+${anyYear}${timeOfDay}`,
  // 20261122T070000Z
  String.raw`${year}(?<month>\d\d)(?<day>\d\d)t(?<hour>\d\d)(?<minute>\d\d)(?:(?<second>\d\d)(?:[.,](?<fraction>\d{1,12}))?)?${zone}`,
  // 2026年11月22日07时00分00秒
  String.raw`${year}年${number}月${day}日(?:(?<hour>\d\d)时(?<minute>\d\d)分(?<second>\d\d)秒)?`,
].map((form) => new RegExp(`^${form}$`, "i"));

/**
 * The moment that the JSON token body[start, end) names, in milliseconds since 1970; NaN where it
 * names none in the years 0 to 9999.
 */
export function otherFormMs(body: Buffer, start: number, end: number): number {
  if (body[start] !== Ascii.Quote || end - start > tokenBytesMax) return Number.NaN;
  const text = JSON.parse(body.toString("utf8", start, end)) as string;
  if (text.length > charsMax) return Number.NaN;
  if (/^\d+$/.test(text)) return epochMs(text);
  for (const form of forms) {
    const parts = form.exec(text)?.groups;
    if (parts !== undefined) return momentOf(parts);
  }
  return Number.NaN;
}

/**
 * The moment of a number since 1970: seconds where it has 10 digits, milliseconds where it has 13,
 * nanoseconds where it has 19, and NaN for any other.
 */
function epochMs(digits: string): number {
  if (digits.length === 10) return Number(digits) * secondMs;
  return digits.length === 13 || digits.length === 19 ? Number(digits.slice(0, 13)) : Number.NaN;
}

type Parts = Readonly<Record<string, string | undefined>>;

function momentOf(parts: Parts): number {
  const dayMs = dateMs(parts);
  if (parts["hour"] === undefined) return dayMs;
  const ms = dayMs + timeMs(parts) - zoneMs(parts["zone"]);
  return ms >= storedMsMin && ms <= storedMsMax ? ms : Number.NaN;
}

function dateMs(parts: Parts): number {
  const month = monthOf(parts["month"] ?? "");
  const date = new Date(0);
  date.setUTCFullYear(yearOf(parts["year"] ?? ""), month, Number(parts["day"]));
  // Where the month has no such day, Date goes on into the next month. A month that is NaN makes
  // the date invalid, and its parts equal nothing.
  if (date.getUTCMonth() !== month || date.getUTCDate() !== Number(parts["day"])) return Number.NaN;
  const weekday = parts["weekday"]?.toLowerCase();
  return weekday === undefined || weekdays[date.getUTCDay()] === weekday
    ? date.getTime()
    : Number.NaN;
}

/**
 * A year of two digits is read only where all readers take it for the same year: for 50 to 69, mail
 * (RFC 2822, 4.3) means the last century and others mean this one, so these give NaN.
 */
function yearOf(text: string): number {
  const year = Number(text);
  if (text.length > 2) return year;
  return year < 50 ? year + 2_000 : year >= 70 ? year + 1_900 : Number.NaN;
}

/** The month, counted from 0; NaN for an unknown name. */
function monthOf(text: string): number {
  if (/^\d/.test(text)) return Number(text) - 1;
  const name = text.toLowerCase();
  const place =
    name.length === 3 ? months.indexOf(name) : name === "sept" ? 8 : monthNames.indexOf(name);
  return place < 0 ? Number.NaN : place;
}

function timeMs({ hour = "", minute = "", second = "0", fraction = "0", half }: Parts): number {
  const hours = half === undefined ? Number(hour) : hourOfHalf(Number(hour), half.toLowerCase());
  if (!(hours <= 23) || Number(minute) > 59 || Number(second) > 60) return Number.NaN;
  return (
    (hours * 60 + Number(minute)) * minuteMs +
    Number(second) * secondMs +
    Number(fraction.padEnd(3, "0").slice(0, 3))
  );
}

function hourOfHalf(hour: number, half: string): number {
  return hour < 1 || hour > 12 ? Number.NaN : (hour % 12) + (half === "pm" ? 12 : 0);
}

function zoneMs(zone: string | undefined): number {
  if (zone === undefined) return 0;
  const name = zone.toLowerCase();
  if (name >= "a") return (zoneHours.get(name) ?? Number.NaN) * 60 * minuteMs;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(3).replace(":", ""));
  if (hours > 23 || minutes > 59) return Number.NaN;
  return (hours * 60 + minutes) * minuteMs * (zone.startsWith("-") ? -1 : 1);
}
