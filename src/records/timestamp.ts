// Parses ISO 8601 timestamps to milliseconds, and writes them as `2026-01-31T23:59:59.999Z`. It
// works on bytes, because a Date or a string for each timestamp would take as long as the rest of
// the record. The result must not depend on the clock.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import { dayMs } from "../platform/base/day.ts";

export const storedTimestampBytes = 24;

/** The beginning of year 0, in milliseconds since 1970. `storedMsMax` is the end of year 9999. */
export const storedMsMin = -62_167_219_200_000;
export const storedMsMax = 253_402_300_799_999;

const LETTER_T = 0x54;
const LETTER_Z = 0x5a;
const toLower = 0x20;
const DIGIT_0 = 0x30;
const fractionDigitsMax = 12;
/** All formats have fewer than 48 characters, and each character may be written as \uXXXX. */
const tokenBytesMax = 6 * 48 + 2;

/**
 * Returns milliseconds since 1970. Returns NaN if the text is not a timestamp, or if its year is
 * not between 0 and 9999. A timestamp without a zone is in UTC. Second 60 (a leap second) counts as
 * the first second of the next minute.
 */
export function timestampMs(body: Buffer, start: number, end: number): number {
  if (isStoredForm(body, start, end)) return storedFormMs(body, start);
  const length = end - start;
  if (length < 10 || body[start + 4] !== Ascii.Minus || body[start + 7] !== Ascii.Minus)
    return Number.NaN;
  const year = twoDigits(body, start) * 100 + twoDigits(body, start + 2);
  const month = twoDigits(body, start + 5);
  const day = twoDigits(body, start + 8);
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month))
    return Number.NaN;
  const days = daysBefore(year, month, day);
  const ms = length === 10 ? days * dayMs : days * dayMs + timeMs(body, start + 10, end);
  return ms >= storedMsMin && ms <= storedMsMax ? ms : Number.NaN;
}

/** Returns whether the timestamp can be copied to the record. It cannot if it has a second 60. */
export function isStoredForm(body: Buffer, start: number, end: number): boolean {
  return (
    end - start === storedTimestampBytes &&
    body[start + 23] === LETTER_Z &&
    isDigit(body[start + 22]!) &&
    body[start + 19] === Ascii.Dot &&
    body[start + 17] !== DIGIT_0 + 6 &&
    body[start + 16] === Ascii.Colon &&
    body[start + 10] === LETTER_T
  );
}

function storedFormMs(body: Buffer, start: number): number {
  if (
    body[start + 4] !== Ascii.Minus ||
    body[start + 7] !== Ascii.Minus ||
    body[start + 13] !== Ascii.Colon
  )
    return Number.NaN;
  const year = twoDigits(body, start) * 100 + twoDigits(body, start + 2);
  const month = twoDigits(body, start + 5);
  const day = twoDigits(body, start + 8);
  const hour = twoDigits(body, start + 11);
  const minute = twoDigits(body, start + 14);
  const second = twoDigits(body, start + 17);
  const hundredths = twoDigits(body, start + 20);
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month))
    return Number.NaN;
  if (!inRange(hour, 23) || !inRange(minute, 59) || !inRange(second, 59) || hundredths < 0)
    return Number.NaN;
  const ofDay =
    ((hour * 60 + minute) * 60 + second) * 1_000 + hundredths * 10 + body[start + 22]! - DIGIT_0;
  return daysBefore(year, month, day) * dayMs + ofDay;
}

/** Parses a JSON token like `timestampMs`. Returns NaN if the token is not a string. */
export function timestampTokenMs(body: Buffer, start: number, end: number): number {
  if (body[start] !== Ascii.Quote || end - start > tokenBytesMax) return Number.NaN;
  const ms = timestampMs(body, start + 1, end - 1);
  if (!Number.isNaN(ms) || !body.subarray(start, end).includes(Ascii.Backslash)) return ms;
  const text = Buffer.from(JSON.parse(body.toString("utf8", start, end)) as string);
  return timestampMs(text, 0, text.length);
}

function timeMs(body: Buffer, at: number, end: number): number {
  const separator = body[at]!;
  if ((separator | toLower) !== (LETTER_T | toLower) && separator !== Ascii.Space)
    return Number.NaN;
  if (end - at < 6 || body[at + 3] !== Ascii.Colon) return Number.NaN;
  const hour = twoDigits(body, at + 1);
  const minute = twoDigits(body, at + 4);
  let second = 0;
  let fraction = 0;
  let next = at + 6;
  if (next < end && body[next] === Ascii.Colon) {
    if (end - next < 3) return Number.NaN;
    second = twoDigits(body, next + 1);
    next += 3;
    if (next < end && (body[next] === Ascii.Dot || body[next] === Ascii.Comma)) {
      const first = ++next;
      for (let scale = 100; next < end && isDigit(body[next]!); next++) {
        fraction += (body[next]! - DIGIT_0) * scale;
        scale = (scale / 10) | 0;
      }
      if (next === first || next - first > fractionDigitsMax) return Number.NaN;
    }
  }
  if (!inRange(hour, 23) || !inRange(minute, 59) || !inRange(second, 60)) return Number.NaN;
  const sinceMidnight = ((hour * 60 + minute) * 60 + second) * 1_000 + fraction;
  return next === end ? sinceMidnight : sinceMidnight - zoneMinutes(body, next, end) * 60_000;
}

function zoneMinutes(body: Buffer, at: number, end: number): number {
  const signAt = body[at] === Ascii.Space ? at + 1 : at;
  const length = end - signAt;
  const sign = length > 0 ? body[signAt]! : 0;
  if ((sign | toLower) === (LETTER_Z | toLower)) return length === 1 ? 0 : Number.NaN;
  if (sign !== Ascii.Plus && sign !== Ascii.Minus) return Number.NaN;
  const hasColon = length === 6 && body[signAt + 3] === Ascii.Colon;
  if (length !== 3 && length !== 5 && !hasColon) return Number.NaN;
  const hours = twoDigits(body, signAt + 1);
  const minutes = length === 3 ? 0 : twoDigits(body, end - 2);
  if (!inRange(hours, 23) || !inRange(minutes, 59)) return Number.NaN;
  return (hours * 60 + minutes) * (sign === Ascii.Minus ? -1 : 1);
}

// Returns a negative number if one of the bytes is not a digit. Then the sum of all parts is also
// negative.
function twoDigits(body: Buffer, at: number): number {
  const tens = body[at]! - DIGIT_0;
  const ones = body[at + 1]! - DIGIT_0;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1_000_000;
}

function isDigit(byte: number): boolean {
  return byte >= DIGIT_0 && byte <= DIGIT_0 + 9;
}

function inRange(value: number, max: number): boolean {
  return value >= 0 && value <= max;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

// Years begin in March, so that a leap day is the last day of its year. They are counted from one
// calendar cycle before year 0, so that no value is negative.
const cycleYears = 400;
const cycleDays = 146_097;
const cycleDaysBefore1970 = 719_468 + cycleDays;

function daysBefore(year: number, month: number, day: number): number {
  const fromMarch = (month <= 2 ? year - 1 : year) + cycleYears;
  const leapDays = (fromMarch >> 2) - ((fromMarch / 100) | 0) + ((fromMarch / 400) | 0);
  const dayOfYear = (((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) | 0) + day - 1;
  return fromMarch * 365 + leapDays + dayOfYear - cycleDaysBefore1970;
}

export function writeTimestamp(target: Buffer, at: number, ms: number): number {
  const days = Math.floor(ms / dayMs) | 0;
  const ofDay = (ms - days * dayMs) | 0;
  const ofCycles = days + cycleDaysBefore1970;
  const cycle = (ofCycles / cycleDays) | 0;
  const ofCycle = ofCycles - cycle * cycleDays;
  const leapless =
    ofCycle - ((ofCycle / 1_460) | 0) + ((ofCycle / 36_524) | 0) - ((ofCycle / 146_096) | 0);
  const yearOfCycle = (leapless / 365) | 0;
  const ofYear = ofCycle - (yearOfCycle * 365 + (yearOfCycle >> 2) - ((yearOfCycle / 100) | 0));
  const monthFromMarch = ((5 * ofYear + 2) / 153) | 0;
  const day = ofYear - (((153 * monthFromMarch + 2) / 5) | 0) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = (cycle - 1) * cycleYears + yearOfCycle + (month <= 2 ? 1 : 0);
  const minutes = (ofDay / 60_000) | 0;
  const ofMinute = ofDay - minutes * 60_000;
  const second = (ofMinute / 1_000) | 0;
  const thousandths = ofMinute - second * 1_000;
  const hundreds = (thousandths / 100) | 0;
  writeTwo(target, at, (year / 100) | 0);
  writeTwo(target, at + 2, year % 100);
  target[at + 4] = Ascii.Minus;
  writeTwo(target, at + 5, month);
  target[at + 7] = Ascii.Minus;
  writeTwo(target, at + 8, day);
  target[at + 10] = LETTER_T;
  writeTwo(target, at + 11, (minutes / 60) | 0);
  target[at + 13] = Ascii.Colon;
  writeTwo(target, at + 14, minutes % 60);
  target[at + 16] = Ascii.Colon;
  writeTwo(target, at + 17, second);
  target[at + 19] = Ascii.Dot;
  target[at + 20] = DIGIT_0 + hundreds;
  writeTwo(target, at + 21, thousandths - hundreds * 100);
  target[at + 23] = LETTER_Z;
  return at + storedTimestampBytes;
}

function writeTwo(target: Buffer, at: number, value: number): void {
  const tens = (value / 10) | 0;
  target[at] = DIGIT_0 + tens;
  target[at + 1] = DIGIT_0 + value - tens * 10;
}
