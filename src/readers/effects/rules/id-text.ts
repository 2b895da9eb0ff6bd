import type { Buffer } from "node:buffer";
import { distinctIdCharactersMax, distinctIdText } from "../../../records/distinct-id.ts";
import { isVisible } from "../../../records/event-name.ts";
import { TokenType } from "../../../records/table.ts";

function isPlainId(body: Buffer, start: number, end: number, type: TokenType): boolean {
  // A text with a visible first character is not blank.
  const isShort = end - start - 2 <= distinctIdCharactersMax;
  return type === TokenType.PlainString && isShort && isVisible(body[start + 1]!);
}

/**
 * Returns the normalised text of a distinct id, an id in a link, or a group's type or key; "" if it
 * is blank. The token body[start, end) must not be Absent, Null or EmptyString.
 */
export function idText(body: Buffer, start: number, end: number, type: TokenType): string {
  return isPlainId(body, start, end, type)
    ? body.toString("utf8", start + 1, end - 1)
    : distinctIdText(body, start, end, type).text;
}
