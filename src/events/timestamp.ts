// Timestamps as clients write them (ISO 8601, RFC 3339 and their near relatives) to the one stored form,
// `2026-01-31T23:59:59.999Z`: UTC, milliseconds, 24 bytes. Must not consult the clock.

import type { Buffer } from "node:buffer";

/** Bytes of the stored form, without quotes. */
export const storedTimestampBytes = 24;

const DASH = 0x2d;
const COLON = 0x3a;

/**
 * Whether body[start, end), quotes not included, is in the stored form already and names a real moment: then the bytes
 * can be copied. Almost all SDKs send exactly this.
 */
export function isStoredTimestamp(body: Buffer, start: number, end: number): boolean {
  if (end - start !== storedTimestampBytes) return false;
  if (body[start + 4] !== DASH || body[start + 7] !== DASH || body[start + 10] !== 0x54) return false;
  if (body[start + 13] !== COLON || body[start + 16] !== COLON) return false;
  if (body[start + 19] !== 0x2e || body[start + 23] !== 0x5a) return false;
  const year = twoDigits(body, start) * 100 + twoDigits(body, start + 2);
  const month = twoDigits(body, start + 5);
  const day = twoDigits(body, start + 8);
  const milliseconds = twoDigits(body, start + 20) * 10 + twoDigits(body, start + 21);
  return (
    year >= 0 &&
    milliseconds >= 0 &&
    inRange(month, 1, 12) &&
    inRange(day, 1, daysInMonth(year, month)) &&
    inRange(twoDigits(body, start + 11), 0, 23) &&
    inRange(twoDigits(body, start + 14), 0, 59) &&
    inRange(twoDigits(body, start + 17), 0, 59)
  );
}

// Anything that is no digit makes the result so negative that no sum of parts can hide it.
function twoDigits(body: Buffer, at: number): number {
  const tens = body[at]! - 0x30;
  const ones = body[at + 1]! - 0x30;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1_000_000;
}

function inRange(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

// Date, optionally a time after T or a space, optionally a zone: Z, +03:00, +0300 or +03. A zone needs a time before it.
const isoPattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,12}))?)?(?: ?([Zz])| ?([+-])(\d{2})(?::?(\d{2}))?)?)?$/;

/**
 * The stored form of a timestamp text, or undefined when it names no moment from year 0 to 9999.
 * No zone means UTC; digits past the millisecond are cut; second 60 (a leap second) is the next minute's first.
 */
export function storedTimestamp(text: string): string | undefined {
  const match = isoPattern.exec(text);
  if (match === null) return undefined;
  const part = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day] = [part(1), part(2), part(3)];
  const [hour, minute, second] = [part(4), part(5), part(6)];
  if (!inRange(month, 1, 12) || !inRange(day, 1, daysInMonth(year, month))) return undefined;
  if (hour > 23 || minute > 59 || second > 60 || part(10) > 23 || part(11) > 59) return undefined;
  const milliseconds = Number((match[7] ?? "").slice(0, 3).padEnd(3, "0"));
  const offsetMinutes = (part(10) * 60 + part(11)) * (match[9] === "-" ? -1 : 1);
  const moment = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  moment.setUTCFullYear(year, month - 1, day);
  moment.setUTCHours(hour, minute - offsetMinutes, second, milliseconds);
  const stored = moment.toISOString();
  return stored.length === storedTimestampBytes ? stored : undefined;
}
