// Reads the times of lines. The size of a number shows its unit.

import { aheadMsMax } from "../../records/event-time.ts";
import {
  isZeroTime,
  readTimeText,
  TimeForm,
  type TimeText,
} from "../../records/other-date-forms.ts";
import { numberOf } from "./json-text.ts";
import type { TimeZone } from "./time-zone.ts";

interface Unit {
  /** The smallest number in this unit: a time in 1973. */
  readonly from: number;
  readonly to: number;
  readonly ms: number;
}

/** A number between two units could be in either, so it is rejected. */
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
 * Returns the first value that is a time, with numbers as ISO 8601. Otherwise returns the first
 * unreadable value, which the gateway reports, else a zero time. `timeZone` is the zone of numbers
 * and of text without a zone.
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
