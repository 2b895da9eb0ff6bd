// Compares stored records with an expected event, and explains why no record matches.

import { isDeepStrictEqual } from "node:util";
import type { ClientWarning } from "../../platform/base/client-warning.ts";
import { lettersApart, nearest, typosMax } from "../../platform/base/near-name.ts";
import { recordFields } from "../../records/fields.ts";
import { counted } from "../terminal.ts";

export type StoredRecord = Readonly<Record<string, unknown>>;

/** The members that a stored record must have. An object may have additional members. */
export type Expected = Readonly<Record<string, unknown>>;

interface Difference {
  readonly path: string;
  readonly expected: unknown;
  readonly stored: unknown;
}

interface Comparison {
  readonly equal: number;
  readonly differences: readonly Difference[];
}

interface Miss {
  readonly expected: Expected;
  readonly waitedMs: number;
  readonly records: readonly StoredRecord[];
  readonly refusals: readonly ClientWarning[];
  readonly requests: number;
  readonly url: string;
}

const valueCharactersMax = 200;

/** Returns the reason if the body of a request is not a valid expectation. */
export function expectedFault(value: unknown): string | undefined {
  if (!isObject(value)) return 'the body must be an object, such as {"event": "signed up"}';
  const fields = [...Object.keys(recordFields), "timeout_ms"];
  const unknown = Object.keys(value).find((name) => !fields.includes(name));
  if (unknown === undefined) return undefined;
  const plain = unknown.toLowerCase();
  const similar = nearest(fields, (name) => lettersApart(name, plain), typosMax(plain));
  const instead = similar === undefined ? `use one of ${fields.join(", ")}` : `use ${similar}`;
  return `${JSON.stringify(unknown)} is not a member of a stored event: ${instead}`;
}

export function matches(record: StoredRecord, expected: Expected): boolean {
  return compare(record, expected).differences.length === 0;
}

/** Returns the record with the most expected members. If several match, returns the latest. */
export function nearestRecord(
  records: readonly StoredRecord[],
  expected: Expected,
): StoredRecord | undefined {
  return records.reduce<readonly [StoredRecord | undefined, number]>(
    (best, record) => {
      const { equal } = compare(record, expected);
      return equal >= best[1] ? [record, equal] : best;
    },
    [undefined, 0],
  )[0];
}

export function missText({ expected, waitedMs, records, refusals, requests, url }: Miss): string {
  const lines = [
    `no stored event matches ${shown(expected)} (waited ${waitedMs} ms)`,
    ...nearestLines(records, expected),
    ...refusals.flatMap((refusal) => refusalLines(refusal, url)),
  ];
  if (records.length === 0 && refusals.length === 0)
    lines.push(
      requests === 0
        ? `The gateway has received no request: does the app send to ${url}, and has it sent its queue (shutdown or flush)?`
        : "The gateway has rejected no event: has the app sent its queue (shutdown or flush)?",
    );
  return lines.join("\n");
}

function nearestLines(records: readonly StoredRecord[], expected: Expected): string[] {
  const found = nearestRecord(records, expected);
  if (found === undefined) return ["No event is stored."];
  const { equal, differences } = compare(found, expected);
  const total = equal + differences.length;
  return [
    `The nearest of ${counted(records.length, "stored event")} has ${equal} of ${total} members:`,
    `    ${[found["event"], found["distinct_id"], found["uuid"]].map(shown).join(" ")}`,
    ...differences.flatMap(({ path, expected: wanted, stored }) => [
      `  - ${path}: ${shown(wanted)}`,
      `  + ${path}: ${stored === undefined ? "absent" : shown(stored)}`,
    ]),
  ];
}

function refusalLines(
  { status, code, detail, path, client, times }: ClientWarning,
  url: string,
): string[] {
  const sender = client === "" ? "" : ` from ${client}`;
  const what = status === 200 ? "Not stored" : `Rejected with ${status}`;
  return [
    `${what}: ${code}: ${detail} (${path}${sender}, ${counted(times, "time")})`,
    `    ${url}/docs/errors#${code}`,
  ];
}

function compare(stored: unknown, expected: unknown, path = ""): Comparison {
  if (isObject(expected) && isObject(stored)) {
    const parts = Object.entries(expected).map(([name, value]) =>
      compare(stored[name], value, path === "" ? name : `${path}.${name}`),
    );
    return {
      equal: parts.reduce((sum, { equal }) => sum + equal, 0),
      differences: parts.flatMap(({ differences }) => differences),
    };
  }
  return isDeepStrictEqual(stored, expected)
    ? { equal: 1, differences: [] }
    : { equal: 0, differences: [{ path, expected, stored }] };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length <= valueCharactersMax ? text : `${text.slice(0, valueCharactersMax)}…`;
}
