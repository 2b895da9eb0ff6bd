// What a ClickHouse answers when it does not do what it should: its own number for it, words for
// people, and whether a value of a row is at fault, so that the row can be put aside.

import { StoreError } from "../../../platform/base/store-error.ts";

/** The server has answered, and not as it should. */
export class ClickHouseError extends StoreError {
  /** The server's number, as in `Code: 252`; undefined where it gave none. */
  readonly code: number | undefined;
  /** What the server said, which may have parts of a row in it. */
  readonly said: string;

  constructor(message: string, { code, said }: { code: number | undefined; said: string }) {
    super(message);
    this.code = code;
    this.said = said;
  }
}

export const runningAlready = 216;
/** What a value of a row may lead to, whatever types and constraints the table has been given. */
const valueCodes = new Set([
  ...[6, 25, 26, 27, 38, 41, 53, 69, 70, 72, 117, 131, 190, 321, 349, 376, 395, 407, 469],
  ...[675, 676, 691],
]);
const hints: Readonly<Record<number, string>> = {
  60: "a table is not there: let the sink make it, or make it by `penstock sink clickhouse --ddl`",
  81: "the database is not there: let the sink make it, or make it by `penstock sink clickhouse --ddl`",
  115: "a parameter of the URL is no setting of this server",
  192: "check user and password of the URL",
  193: "check user and password of the URL",
  194: "check user and password of the URL",
  202: "the server has as many queries as it may: waiting",
  241: "the server has no memory for it: waiting; smaller batches need less",
  242: "the table is read-only at present: waiting",
  252: "the server has too many parts to merge: waiting; larger batches make fewer",
  497: "the user may not do this: see the guide for what it needs",
  516: "check user and password of the URL",
};
const shownMax = 300;

/** `doing`: `write to ClickHouse at …`. */
export function errorOf(
  doing: string,
  { status, code, text }: { status: number; code: number | undefined; text: string },
): ClickHouseError {
  const number = code ?? codeIn(text);
  const said = plainText(text);
  const hint = hints[number ?? 0] ?? byStatus(status);
  // What a row has in it goes into no log.
  const isOfValue = number !== undefined && valueCodes.has(number);
  const shown = isOfValue ? `it does not take a value (code ${number})` : said.slice(0, shownMax);
  const words = shown === "" ? `it answers ${status}` : shown;
  return new ClickHouseError(
    hint === undefined ? `${doing}: ${words}` : `${doing}: ${hint} (${words})`,
    { code: number, said },
  );
}

export function isOfValue(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && valueCodes.has(error.code ?? 0);
}

/** An exception may also come after a status of 200. */
export function hasException(text: string): boolean {
  return /(?:^|\n|__exception__)[\s\S]{0,32}Code: \d+[.,] [\s\S]*DB::Exception/.test(text);
}

function codeIn(text: string): number | undefined {
  const found = /Code: (\d+)[.,]/.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

function byStatus(status: number): string | undefined {
  if (status === 401 || status === 403) return "check user and password of the URL";
  if (status === 429 || status === 503) return "it has too much to do: waiting";
  if (status >= 300 && status < 400) return "it sends elsewhere: say where in the URL";
  return undefined;
}

/** Without what says nothing: the class of the exception, the version, the stack. */
function plainText(text: string): string {
  return text
    .replace(/^[\s\S]*?Code: \d+[.,] (?:e\.displayText\(\) = )?DB::Exception: /, "")
    .replace(/,? e\.what\(\) = DB::Exception[\s\S]*$/, "")
    .replace(/\s*\(version [^)]*\)\s*$/, "")
    .trim();
}
