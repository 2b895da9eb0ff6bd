// Reads the text of an id: a distinct id, an id in a link, a group's type or key. All are
// normalised in the same way, so that a long id always becomes the same text.

import type { Buffer } from "node:buffer";
import { distinctIdCharactersMax, distinctIdText } from "../../../records/distinct-id.ts";
import { isVisible } from "../../../records/event-name.ts";
import { TokenType } from "../../../records/table.ts";

/** Returns whether the token body[start, end) is stored unchanged, without its quotes. */
function isPlainId(body: Buffer, start: number, end: number, type: TokenType): boolean {
  // The number of characters is at most the number of bytes. A text with a visible first character
  // is not blank.
  const isShort = end - start - 2 <= distinctIdCharactersMax;
  return type === TokenType.PlainString && isShort && isVisible(body[start + 1]!);
}

/**
 * Returns the text of the token body[start, end), which must not be Absent, Null or EmptyString; ""
 * if the text is blank.
 */
export function idText(body: Buffer, start: number, end: number, type: TokenType): string {
  return isPlainId(body, start, end, type)
    ? body.toString("utf8", start + 1, end - 1)
    : distinctIdText(body, start, end, type).text;
}
