// Reads the times of lines. The unit of a number is detected from its size.

import { dayMs } from "../../platform/base/day.ts";
import { aheadMsMax } from "../../records/event-time.ts";
import {
  isZeroTime,
  readTimeText,
  TimeForm,
  type TimeText,
} from "../../records/other-date-forms.ts";
import { numberOf } from "./json-text.ts";

interface Unit {
  readonly from: number;
  readonly to: number;
  readonly ms: number;
}

/** The ranges of numbers by unit. A number between two ranges is rejected as ambiguous. */
const units: readonly Unit[] = [
  { from: 1e8, to: 1e10, ms: 1_000 },
  { from: 1e11, to: 1e13, ms: 1 },
  { from: 1e14, to: 1e16, ms: 1e-3 },
  { from: 1e17, to: 1e19, ms: 1e-6 },
];

export function readTime(value: unknown): TimeText {
  if (typeof value === "string") return readTimeText(value);
  const number = numberOf(value) ?? Number.NaN;
  const unit = units.find(({ from, to }) => number >= from && number < to);
  const ms = unit === undefined ? Number.NaN : Math.round(number * unit.ms);
  return { ms, form: TimeForm.Epoch };
}

function isMissing(value: unknown): boolean {
  if (typeof value === "string") return /^\s*0*\s*$/.test(value);
  return value === undefined || value === null || numberOf(value) === 0;
}

/**
 * Returns the first value that is a time. If there is none, returns the first value that cannot be
 * read, and the gateway reports it. Numbers are converted to ISO 8601. `timeZone` applies to
 * numbers, and to text without a time zone.
 */
export function timeOf(values: readonly unknown[], timeZone?: TimeZone): unknown {
  let unreadable: unknown;
  let zero: unknown;
  for (const value of values) {
    if (isMissing(value)) continue;
    const { ms, form } = readTime(value);
    if (isZeroTime(ms)) zero ??= value;
    else if (!(ms <= Date.now() + aheadMsMax)) unreadable ??= value;
    else if (timeZone !== undefined && form !== TimeForm.Zoned)
      return new Date(timeZone.utcMs(ms)).toISOString();
    else return form === TimeForm.Epoch ? new Date(ms).toISOString() : value;
  }
  return unreadable ?? zero;
}

/** An interval in ms that is so short that no time zone changes its offset twice in it. */
const quarterMs = 900_000;
const cachedMax = 10_000;
const offsetMinutesMax = 18 * 60;

export class TimeZone {
  readonly #format: Intl.DateTimeFormat;
  readonly #offsetsMs = new Map<number, number>();

  /** Parses a zone, such as `Asia/Kolkata` or `+05:30`. Throws a RangeError if it is unknown. */
  constructor(text: string) {
    const offset = /^[+-](\d\d):?(\d\d)$/.exec(text);
    if (offset !== null && Number(offset[1]) * 60 + Number(offset[2]) > offsetMinutesMax)
      throw new RangeError(`no time zone has the offset ${text}`);
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: text,
      calendar: "iso8601",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  /**
   * Converts a local time to UTC. `wallMs` is the local time as if it were in UTC. If the local
   * time occurs twice, the first time is returned.
   */
  utcMs(wallMs: number): number {
    const before = this.#offsetMs(wallMs - dayMs);
    for (const offset of [before, this.#offsetMs(wallMs + dayMs)])
      if (this.#offsetMs(wallMs - offset) === offset) return wallMs - offset;
    return wallMs - before;
  }

  /**
   * Returns the offset of a time. If it changes within the quarter of an hour, it is computed for
   * the exact second, because it may change a minute after the full hour, as in Gaza.
   */
  #offsetMs(ms: number): number {
    const quarter = Math.floor(ms / quarterMs);
    const offset = this.#cachedMs(quarter);
    if (offset === this.#cachedMs(quarter + 1)) return offset;
    const second = Math.floor(ms / 1_000) * 1_000;
    return this.#shownMs(second) - second;
  }

  #cachedMs(quarter: number): number {
    const known = this.#offsetsMs.get(quarter);
    if (known !== undefined) return known;
    const offset = this.#shownMs(quarter * quarterMs) - quarter * quarterMs;
    if (this.#offsetsMs.size >= cachedMax) this.#offsetsMs.clear();
    this.#offsetsMs.set(quarter, offset);
    return offset;
  }

  #shownMs(ms: number): number {
    const shown = new Map<string, number>();
    for (const { type, value } of this.#format.formatToParts(ms)) shown.set(type, Number(value));
    const part = (name: string): number => shown.get(name) ?? 0;
    return Date.UTC(
      ...([part("year"), part("month") - 1, part("day")] as const),
      ...([part("hour"), part("minute"), part("second")] as const),
    );
  }
}
