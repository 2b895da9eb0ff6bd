// The text of a token that is an id: a distinct id, an id in a link, a group's type or key. All are
// normalised alike, so that a long id always becomes the same text.

import type { Buffer } from "node:buffer";
import { distinctIdCharactersMax, distinctIdText } from "../../../records/distinct-id.ts";
import { isVisible } from "../../../records/event-name.ts";
import { TokenType } from "../../../records/table.ts";

/** Whether the token body[start, end) is stored unchanged, between its quotes. */
function isPlainId(body: Buffer, start: number, end: number, type: TokenType): boolean {
  // The number of bytes limits the number of characters, and a text with a visible first character
  // is not blank.
  const isShort = end - start - 2 <= distinctIdCharactersMax;
  return type === TokenType.PlainString && isShort && isVisible(body[start + 1]!);
}

/**
 * The text of the token body[start, end), which is not Absent, Null or EmptyString; "" if it is
 * blank.
 */
export function idText(body: Buffer, start: number, end: number, type: TokenType): string {
  return isPlainId(body, start, end, type)
    ? body.toString("utf8", start + 1, end - 1)
    : distinctIdText(body, start, end, type).text;
}
