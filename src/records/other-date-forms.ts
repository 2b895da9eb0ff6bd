// Parses timestamps that are not in ISO 8601. It accepts a format only if all readers understand
// the same time. It rejects dates whose day and month could be swapped (`05.06.2026`). The result
// must not depend on the clock or on the time zone of the machine.

import { Buffer } from "node:buffer";
import { storedMsMax, storedMsMin, timestampMs, timestampTokenMs } from "./timestamp.ts";

const charsMax = 128;
const tokenBytesMax = 6 * charsMax + 2;

const minuteMs = 60_000;
const secondMs = 1_000;

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const monthNames = [
  "january",
  "february",
  "march",
  "april",
  "may",
  "june",
  "july",
  "august",
  "september",
  "october",
  "november",
  "december",
];
const weekdayNames = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/**
 * The time zones that RFC 2822 (4.3) defines, with their difference from UTC in hours. Most other
 * names have several meanings.
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
const weekdayName = String.raw`(?:(?<weekday>[a-z]{3,9}),?\s+)?`;
const anyYear = String.raw`(?<year>\d{4}|\d\d)`;
const day = String.raw`(?<day>\d{1,2})`;
const number = String.raw`(?<month>\d{1,2})`;
const name = "(?<month>[a-z]{3,9})";
const zone = String.raw`(?:\s*(?<zone>[a-z]{1,3}|[+-]\d\d(?::?\d\d)?))?`;
const time = String.raw`(?<hour>\d{1,2}):(?<minute>\d\d)(?::(?<second>\d\d)(?:[.,](?<fraction>\d{1,12}))?)?(?:\s*(?<half>[ap]m))?${zone}`;
const timeOfDay = String.raw`(?:,?\s+(?:at\s+)?${time})?`;

/** No text matches two of these formats. */
const forms: readonly RegExp[] = [
  // 2026-11-22 07:00:00 UTC, 2026/11/22 07:00, 2026.11.22
  String.raw`${year}(?<mark>[-/.])${number}\k<mark>${day}${timeOfDay}`,
  // 2026-Nov-22
  `${year}-${name}-${day}${timeOfDay}`,
  // 11/22/2026 07:00 AM
  `${number}/${day}/${anyYear}${timeOfDay}`,
  // Sun, 22 Nov 2026 07:00:00 GMT
  String.raw`${weekdayName}${day}\s+${name}\.?,?\s+${anyYear}${timeOfDay}`,
  // Sunday, 22-Nov-26 07:00:00 GMT
  `${weekdayName}${day}-${name}-${anyYear}${timeOfDay}`,
  // November 22, 2026 at 7:00 AM, Sun Nov 22 2026 07:00:00 GMT+0000
  String.raw`${weekdayName}${name}\.?\s+${day},?\s+${anyYear}${timeOfDay}`,
  // Sun Nov 22 07:00:00 2026, Sun Nov 22 07:00:00 UTC 2026
  String.raw`(?<weekday>[a-z]{3})\s+${name}\s+${day}\s+${time}\s+${year}`,
  // 20261122T070000Z
  String.raw`${year}(?<month>\d\d)(?<day>\d\d)t(?<hour>\d\d)(?<minute>\d\d)(?:(?<second>\d\d)(?:[.,](?<fraction>\d{1,12}))?)?${zone}`,
  // 2026年11月22日07时00分00秒
  String.raw`${year}年${number}月${day}日(?:(?<hour>\d\d)时(?<minute>\d\d)分(?<second>\d\d)秒)?`,
].map((form) => new RegExp(`^${form}$`, "i"));

/** Some formats state the time zone twice. The replacement states it only once. */
const zoneEndings: readonly (readonly [ending: RegExp, replacement: string])[] = [
  // RFC 9557: 2026-01-02T03:04:05+05:30[Asia/Kolkata][u-ca=gregory]. If there is no offset, the
  // time is certain only if the name of the zone means UTC.
  [/^([^[]+[t ][^[]*(?:[a-z](?<![ap]m)|[+-]\d\d(?::?\d\d)?))(?:\[!?[\w./+=-]+\])+$/i, "$1"],
  [
    /^([^[]+)(?=\[)(?:\[!?(?:z|(?:etc\/)?(?:utc|gmt|uct|zulu|universal))\])?(?:\[!?[\w-]+=[\w-]+\])*$/i,
    "$1",
  ],
  // Go's Time.String: 2026-01-02 03:04:05.123 +0530 IST m=+0.01
  [/^([\d-]{10} [\d:.]{8,29} [+-]\d{4}) (?:[a-z]{1,6}|[+-]\d{2,4})(?: m=[+-][\d.]+)?$/i, "$1"],
  // JavaScript's Date.toString: Thu Nov 26 2026 13:36:49 GMT+0100 (Central European Standard Time)
  [/^(.+) (?:GMT|UTC)([+-]\d\d:?\d\d)(?: \((?:[^()]|\([^()]*\))+\))?$/i, "$1 $2"],
  // A comment after the zone (RFC 2822, 3.3): Thu, 26 Nov 2026 13:36:49 +0100 (CET)
  [/^(.+ [+-]\d{4}) \((?:[^()]|\([^()]*\))+\)$/, "$1"],
];

/** The format of .NET's JSON: milliseconds since 1970, and an offset for display. */
const dateCall = /^\/Date\((-?\d{1,15})(?:[+-]\d{4})?\)\/$/;
const sixDigitYear = /^\+00(?=\d{4}-\d\d)/;

const epochDigits: ReadonlySet<number> = new Set([10, 13, 16, 19]);

/** Parses a JSON token to milliseconds since 1970. Returns NaN if the token is not a timestamp. */
export function clientTimeMs(body: Buffer, start: number, end: number): number {
  const ms = timestampTokenMs(body, start, end);
  return Number.isNaN(ms) ? otherFormMs(body, start, end) : ms;
}

function otherFormMs(body: Buffer, start: number, end: number): number {
  if (end - start > tokenBytesMax) return Number.NaN;
  const value: unknown = JSON.parse(body.toString("utf8", start, end));
  if (typeof value === "number") return epochMs(body.toString("latin1", start, end));
  return typeof value === "string" ? textMs(value) : Number.NaN;
}

function textMs(sent: string): number {
  return readTimeText(sent).ms;
}

export const TimeForm = {
  Epoch: "epoch",
  Local: "local",
  Zoned: "zoned",
} as const;
export type TimeForm = (typeof TimeForm)[keyof typeof TimeForm];

export interface TimeText {
  readonly ms: number;
  readonly form: TimeForm;
}

export function readTimeText(sent: string): TimeText {
  const { Epoch, Local, Zoned } = TimeForm;
  if (sent.length > charsMax) return { ms: Number.NaN, form: Local };
  const text = withoutZoneName(sent.trim().replace(sixDigitYear, ""));
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return { ms: epochMs(text), form: Epoch };
  const called = dateCall.exec(text)?.[1];
  if (called !== undefined) return { ms: storableMs(Number(called)), form: Zoned };
  const bytes = Buffer.from(text);
  const ms = timestampMs(bytes, 0, bytes.length);
  if (!Number.isNaN(ms)) return { ms, form: /[z+-]/i.test(text.slice(10)) ? Zoned : Local };
  for (const form of forms) {
    const parts = form.exec(text)?.groups;
    if (parts !== undefined)
      return { ms: momentOf(parts), form: parts["zone"] === undefined ? Local : Zoned };
  }
  return { ms: Number.NaN, form: Local };
}

function withoutZoneName(text: string): string {
  for (const [ending, replacement] of zoneEndings)
    if (ending.test(text)) return text.replace(ending, replacement);
  return text;
}

function epochMs(number: string): number {
  if (/^-?0(?:\.0+)?$/.test(number)) return 0;
  if (zeroTimes.has(withoutExponent(number))) return year1Ms;
  const [, integer = "", fraction = ""] = /^(\d+)(?:\.(\d+))?$/.exec(withoutExponent(number)) ?? [];
  if (!epochDigits.has(integer.length)) return Number.NaN;
  return Number((integer + fraction).padEnd(13, "0").slice(0, 13));
}

function withoutExponent(number: string): string {
  return /e/i.test(number) ? String(Number(number)) : number;
}

const year1Ms = -62_135_596_800_000;
/**
 * The beginning of year 1 in seconds, milliseconds and microseconds since 1970, and the number of
 * nanoseconds that Go returns for it.
 */
const zeroTimes: ReadonlySet<string> = new Set([
  "-62135596800",
  "-62135596800000",
  "-62135596800000000",
  "-6795364578871345152",
]);
const year2Ms = -62_104_060_800_000;

export function isZeroTime(ms: number): boolean {
  return ms < year2Ms || ms === 0;
}

type Parts = Readonly<Record<string, string | undefined>>;

function momentOf(parts: Parts): number {
  const dayMs = dateMs(parts);
  if (parts["hour"] === undefined) return dayMs;
  const ms = dayMs + timeMs(parts) - zoneMs(parts["zone"]);
  return storableMs(ms);
}

function storableMs(ms: number): number {
  return ms >= storedMsMin && ms <= storedMsMax ? ms : Number.NaN;
}

function dateMs(parts: Parts): number {
  const month = monthOf(parts["month"] ?? "");
  const date = new Date(0);
  date.setUTCFullYear(yearOf(parts["year"] ?? ""), month, Number(parts["day"]));
  // If the month has fewer days, Date continues with the next month.
  if (date.getUTCMonth() !== month || date.getUTCDate() !== Number(parts["day"])) return Number.NaN;
  const weekday = parts["weekday"]?.toLowerCase();
  if (weekday === undefined) return date.getTime();
  const named = weekdayNames[date.getUTCDay()]!;
  return weekday === named || weekday === named.slice(0, 3) ? date.getTime() : Number.NaN;
}

/**
 * Returns NaN for the years 50 to 69 with two digits, because only mail formats define them as 1950
 * to 1969 (RFC 2822, 4.3).
 */
function yearOf(text: string): number {
  const year = Number(text);
  if (text.length > 2) return year;
  return year < 50 ? year + 2_000 : year >= 70 ? year + 1_900 : Number.NaN;
}

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
