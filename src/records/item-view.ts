// An item of a body as the rules and the record writer read it: its position in the scan table, and
// its tokens.

import type { Buffer } from "node:buffer";
import { Extra, extraOf, FieldShift, hasExtra, MoreShift, Row, TokenType } from "./table.ts";

/** The position of an item in a scan table: `row` is the first word of its row. */
export interface ItemRow {
  readonly table: Uint32Array;
  readonly row: number;
}

/** An item with its row and the body that was scanned. */
export interface ItemView extends ItemRow {
  readonly body: Buffer;
}

type StringToken = typeof TokenType.PlainString | typeof TokenType.EscapedString;

export function typeAt(word: number, shift: number): TokenType {
  // The scanner wrote these four bits, and it writes only numbers of TokenType.
  return ((word >>> shift) & 0xf) as TokenType;
}

/**
 * Returns the TokenTypes of the fields that few items have, see ExtraShift. Returns 0, which means
 * Absent for each field, if the item has no extra.
 */
export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

/** Whether the token is a non-empty string. */
export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Whether the field counts as absent. Clients send null for an absent value. */
export function isNothing(
  type: TokenType,
): type is typeof TokenType.Absent | typeof TokenType.Null {
  return type === TokenType.Absent || type === TokenType.Null;
}

/** Whether the field was sent as an object or counts as absent. */
export function isObjectOrNothing(type: TokenType): boolean {
  return type === TokenType.Object || isNothing(type);
}

/** Whether the value can be an id: a non-empty string or a number. */
export function isName(type: TokenType): boolean {
  return isString(type) || type === TokenType.Number;
}

/** Bit that only the types Object and Array have. */
const containerBit = TokenType.Object & TokenType.Array;
const containerDistinctIds =
  (containerBit << FieldShift.DistinctId) | (containerBit << FieldShift.PropertiesDistinctId);

/** Returns the ItemFlag bits of the item; 0 if the table has all that is needed. */
export function itemFlags({ table, row }: ItemRow): number {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags;
}

/**
 * Whether the item can be judged from the table as it is. A distinct id that is an object or array
 * makes an item not plain: it is stored as compact text, which must not depend on the spelling of
 * its strings. If the item is too large to be normalised, the id stays as the client wrote it.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
