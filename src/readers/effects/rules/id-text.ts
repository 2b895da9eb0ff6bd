// The text of a token that names somebody or something: a distinct id, an id in a link, a group's
// type or key. All go by the same rules, or a long id would never meet itself.

import type { Buffer } from "node:buffer";
import { distinctIdCharactersMax, distinctIdText } from "../../../records/distinct-id.ts";
import { isVisible } from "../../../records/event-name.ts";
import { TokenType } from "../../../records/table.ts";

/** Whether the token body[start, end) is stored as it is, between its quotes. */
function isPlainId(body: Buffer, start: number, end: number, type: TokenType): boolean {
  // So many bytes are at most as many characters, and what begins with a visible one is not blank.
  const isShort = end - start - 2 <= distinctIdCharactersMax;
  return type === TokenType.PlainString && isShort && isVisible(body[start + 1]!);
}

/**
 * The text of the token body[start, end), which is not Absent, Null or EmptyString; "" where it is
 * blank.
 */
export function idText(body: Buffer, start: number, end: number, type: TokenType): string {
  return isPlainId(body, start, end, type)
    ? body.toString("utf8", start + 1, end - 1)
    : distinctIdText(body, start, end, type).text;
}
