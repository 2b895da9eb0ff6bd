// Errors of ClickHouse, and whether a value of a row caused them.

import { StoreError } from "../../../platform/base/store-error.ts";

export class ClickHouseError extends StoreError {
  /** Error code of the server, as in `Code: 252`. */
  readonly code: number | undefined;
  /** Error text of the server. It may contain parts of a row. */
  readonly said: string;

  constructor(message: string, { code, said }: { code: number | undefined; said: string }) {
    super(message);
    this.code = code;
    this.said = said;
  }
}

export const runningAlready = 216;
/** Codes of errors that a value can cause, whatever types and constraints the table has. */
const valueCodes = new Set([
  ...[6, 25, 26, 27, 38, 41, 53, 69, 70, 72, 117, 131, 190, 321, 349, 376, 395, 407, 469],
  ...[675, 676, 691],
]);
const hints: Readonly<Record<number, string>> = {
  60: "a table does not exist: let the sink create it, or create it with `penstock sink clickhouse --ddl`",
  81: "the database does not exist: let the sink create it, or create it with `penstock sink clickhouse --ddl`",
  115: "a parameter of the URL is not a setting of this server",
  192: "check user and password of the URL",
  193: "check user and password of the URL",
  194: "check user and password of the URL",
  202: "the server has reached its limit of queries: waiting",
  241: "the server is out of memory: waiting; smaller batches need less",
  242: "the table is read-only at the moment: waiting",
  252: "the server has too many parts to merge: waiting; larger batches create fewer",
  497: "the user lacks a privilege: the guide lists what it needs",
  516: "check user and password of the URL",
};
const shownMax = 300;

/** `doing` is the failed operation, such as `write to ClickHouse at …`. */
export function errorOf(
  doing: string,
  { status, code, text }: { status: number; code: number | undefined; text: string },
): ClickHouseError {
  const number = code ?? codeIn(text);
  const said = plainText(text);
  const hint = hints[number ?? 0] ?? byStatus(status);
  // Data of a row must not appear in the log.
  const isOfValue = number !== undefined && valueCodes.has(number);
  const shown = isOfValue ? `it rejects a value (code ${number})` : said.slice(0, shownMax);
  const words = shown === "" ? `it returns status ${status}` : shown;
  return new ClickHouseError(
    hint === undefined ? `${doing}: ${words}` : `${doing}: ${hint} (${words})`,
    { code: number, said },
  );
}

export function isOfValue(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && valueCodes.has(error.code ?? 0);
}

/** Whether the body contains an exception, which is possible even with status 200. */
export function hasException(text: string): boolean {
  return /(?:^|\n|__exception__)[\s\S]{0,32}Code: \d+[.,] [\s\S]*DB::Exception/.test(text);
}

function codeIn(text: string): number | undefined {
  const found = /Code: (\d+)[.,]/.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

function byStatus(status: number): string | undefined {
  if (status === 401 || status === 403) return "check user and password of the URL";
  if (status === 429 || status === 503) return "it is overloaded: waiting";
  if (status >= 300 && status < 400) return "it redirects: use the target in the URL";
  return undefined;
}

/** Removes the exception's class, the version and the stack. */
function plainText(text: string): string {
  return text
    .replace(/^[\s\S]*?Code: \d+[.,] (?:e\.displayText\(\) = )?DB::Exception: /, "")
    .replace(/,? e\.what\(\) = DB::Exception[\s\S]*$/, "")
    .replace(/\s*\(version [^)]*\)\s*$/, "")
    .trim();
}
