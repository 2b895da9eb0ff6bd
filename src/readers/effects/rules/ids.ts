import type { Buffer } from "node:buffer";
import { distinctIdCharactersMax, distinctIdText } from "../../../records/distinct-id.ts";
import { isVisible } from "../../../records/event-name.ts";
import { TokenType } from "../../../records/table.ts";

/** posthog-js sends this id for every visitor for whom it must not store an id. */
export const cookielessId = "$posthog_cookieless";

const zeros = "00000000-0000-0000-0000-000000000000";

/**
 * Ids that are never merged, in lower case. If they were merged, all users of a program with a bug
 * would become one person.
 */
const illegalIds: ReadonlySet<string> = new Set([
  "anonymous",
  "guest",
  "distinctid",
  "distinct_id",
  "id",
  "not_authenticated",
  "email",
  "undefined",
  "true",
  "false",
  "null",
  "none",
  "nil",
  "nan",
  "n/a",
  "0",
  "-0",
  "0.0",
  "-1",
  "[object object]",
  "[object null]",
  "[object undefined]",
  "[]",
  "{}",
  cookielessId,
  "(null)",
  "<null>",
  "(nil)",
  "<nil>",
  "%!s(<nil>)",
  "(none)",
  "<none>",
  "(undefined)",
  "<undefined>",
  "nullptr",
  "\\n",
  "<no value>",
  "na",
  "#n/a",
  "<anonymous>",
  "unknown",
  "(unknown)",
  "<unknown>",
  "(not set)",
  "--",
  "-",
  "?",
  "0x0",
  "00000000",
  ...[zeros, zeros.replaceAll("0", "f")].flatMap((uuid) => [
    uuid,
    uuid.replaceAll("-", ""),
    `{${uuid}}`,
    `(${uuid})`,
    `urn:uuid:${uuid}`,
  ]),
]);

const quotes = new Set(['"', "'", "`"]);

/**
 * Returns true if an id must not be merged. The check includes U+FFFD, because it replaces damaged
 * characters, so different damaged ids can become equal.
 */
export function isIllegalId(id: string): boolean {
  if (id.includes("\0") || id.includes("\ufffd")) return true;
  let text = id.trim();
  while (isQuoted(text)) text = text.slice(1, -1).trim();
  return text === "" || illegalIds.has(text.toLowerCase());
}

function isQuoted(text: string): boolean {
  return text.length >= 2 && quotes.has(text[0]!) && text.at(-1) === text[0];
}

function isPlainId(body: Buffer, start: number, end: number, type: TokenType): boolean {
  const isShort = end - start - 2 <= distinctIdCharactersMax;
  return type === TokenType.PlainString && isShort && isVisible(body[start + 1]!);
}

/**
 * Returns the normalised text of an id, or "" if the text is blank. The type of the token must not
 * be Absent, Null or EmptyString.
 */
export function idText(body: Buffer, start: number, end: number, type: TokenType): string {
  return isPlainId(body, start, end, type)
    ? body.toString("utf8", start + 1, end - 1)
    : distinctIdText(body, start, end, type).text;
}
