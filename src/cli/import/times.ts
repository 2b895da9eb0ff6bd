// Reads the times of lines that are numbers, and texts of numbers: seconds, milliseconds,
// microseconds or nanoseconds since 1970, told apart by how many digits they have.

import { numberOf } from "./json-text.ts";

/** A text of fewer digits may be a year or a day, and one of 14 digits a day with a time. */
const epochText = /^\d{10}(?:\d{3}){0,3}(?:\.\d+)?$/;

interface Unit {
  /** The least number in it: 1973, of seconds and milliseconds alike. */
  readonly from: number;
  readonly to: number;
  readonly ms: number;
}

/** What is between two units may be in either, and is read as neither. */
const units: readonly Unit[] = [
  { from: 1e8, to: 1e10, ms: 1_000 },
  { from: 1e11, to: 1e13, ms: 1 },
  { from: 1e14, to: 1e16, ms: 1e-3 },
  { from: 1e17, to: 1e19, ms: 1e-6 },
];

/** The milliseconds since 1970 that a number names, or a text of digits; undefined: it names none. */
export function epochMs(value: unknown): number | undefined {
  const number =
    typeof value === "string" && epochText.test(value) ? Number(value) : numberOf(value);
  if (number === undefined) return undefined;
  const unit = units.find(({ from, to }) => number >= from && number < to);
  return unit === undefined ? undefined : Math.round(number * unit.ms);
}

/**
 * A time for the gateway: ISO 8601 for the number of a time. A zero names no time. Everything else
 * stays for the gateway to read, or to report.
 */
export function timeOf(value: unknown): unknown {
  if (numberOf(value) === 0 || value === "0" || value === "") return undefined;
  const ms = epochMs(value);
  return ms === undefined ? value : new Date(ms).toISOString();
}
