// Parses the parameters of a request. Rejects unknown parameters, because a filter with a typo
// would otherwise be ignored and the results would be wrong.

import { instantMsOf, isDay } from "../../../platform/base/day.ts";
import { isLowerCaseUuid } from "../../../platform/base/forms.ts";
import { accessProblems } from "../../../platform/base/port-access.ts";

export type Readers = Readonly<Record<string, (text: string) => unknown>>;

export type Read<R extends Readers> = {
  readonly [Name in keyof R]: ReturnType<R[Name]> | undefined;
};

export function readParameters<R extends Readers>(
  query: URLSearchParams,
  readers: R,
): { readonly values: Read<R> } | { readonly problem: ReadProblem } {
  const values = new Map<string, unknown>();
  for (const [name, text] of query) {
    const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
    if (reader === undefined) return bad(name, `this path has no such parameter${known(readers)}`);
    if (values.has(name)) return bad(name, "is given more than once");
    try {
      values.set(name, reader(text));
    } catch (error) {
      return bad(name, (error as Error).message);
    }
  }
  return { values: Object.fromEntries(values) as Read<R> };
}

export function badParameter(name: string, fault: string): ReadProblem {
  return problem("invalid_parameter", `${shown(name)}: ${fault}`);
}

const pageLimitMax = 1_000;
export const pageLimitDefault = 100;
const cursorLengthMax = 4_096;

export function someText(text: string): string {
  if (text === "") throw new Error("must not be empty");
  return text;
}

export function cursor(text: string): string {
  // U+0000 is rejected, because PostgreSQL does not accept it in text.
  if (text === "" || text.length > cursorLengthMax || text.includes("\0"))
    throw new Error("must be the `next` of the previous page");
  return text;
}

export function uuidCursor(text: string): string {
  if (!isLowerCaseUuid(text)) throw new Error("must be the `next` of the previous page");
  return text;
}

export function pageLimit(text: string): number {
  const number = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > pageLimitMax)
    throw new Error(`must be a whole number from 1 to ${pageLimitMax}`);
  return number;
}

export function day(text: string): string {
  if (!isDay(text)) throw new Error("must be a day such as 2026-11-22");
  return text;
}

/** Parses a time with a time zone, or the start of a day in UTC. Returns milliseconds. */
export function instantMs(text: string): number {
  const ms = instantMsOf(text);
  if (Number.isNaN(ms))
    throw new Error("must be a day such as 2026-11-22, or a time such as 2026-11-22T08:30:00Z");
  return ms;
}

function bad(name: string, fault: string): { problem: ReadProblem } {
  return { problem: badParameter(name, fault) };
}

function known(readers: Readers): string {
  const names = [...Object.keys(readers), "wait_for"];
  return `; the parameters are ${names.join(", ")}`;
}

function shown(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name;
}

interface ProblemRow {
  readonly status: 400 | 401 | 403 | 404 | 405 | 503 | 504;
  readonly title: string;
}

export const problemTable = {
  invalid_parameter: { status: 400, title: "Invalid parameter" },
  ...accessProblems,
  foreign_host: { status: 403, title: "Host name not allowed" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Read-only port: use GET or HEAD" },
  unavailable: { status: 503, title: "The database does not answer" },
  overloaded: { status: 503, title: "Too many concurrent requests" },
  wait_timed_out: { status: 504, title: "The wait for applied events timed out" },
} as const satisfies Record<string, ProblemRow>;

export type ProblemCode = keyof typeof problemTable;

export interface ReadProblem {
  readonly code: ProblemCode;
  readonly detail: string;
}

export function problem(code: ProblemCode, detail: string): ReadProblem {
  return { code, detail };
}

export function problemText({ code, detail }: ReadProblem): string {
  const { status, title } = problemTable[code];
  return `${JSON.stringify({ type: "about:blank", title, status, code, detail })}\n`;
}
