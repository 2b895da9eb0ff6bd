import type { Buffer } from "node:buffer";
import { Extra, extraOf, FieldShift, hasExtra, MoreShift, Row, TokenType } from "./table.ts";

/** `row` is the first word of the item's row. */
export interface ItemRow {
  readonly table: Uint32Array;
  readonly row: number;
}

export interface ItemView extends ItemRow {
  readonly body: Buffer;
}

type StringToken = typeof TokenType.PlainString | typeof TokenType.EscapedString;

export function typeAt(word: number, shift: number): TokenType {
  // The scanner wrote these four bits, and it writes only numbers of TokenType.
  return ((word >>> shift) & 0xf) as TokenType;
}

/** The TokenTypes of fields that few items have, see ExtraShift; 0 without an extra. */
export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Clients send null for an absent value. */
export function isNothing(
  type: TokenType,
): type is typeof TokenType.Absent | typeof TokenType.Null {
  return type === TokenType.Absent || type === TokenType.Null;
}

export function isObjectOrNothing(type: TokenType): boolean {
  return type === TokenType.Object || isNothing(type);
}

export function isName(type: TokenType): boolean {
  return isString(type) || type === TokenType.Number;
}

/** Only the types Object and Array have this bit. */
const containerBit = TokenType.Object & TokenType.Array;
const containerDistinctIds =
  (containerBit << FieldShift.DistinctId) | (containerBit << FieldShift.PropertiesDistinctId);

/** Returns 0 if the table has all that is needed. */
export function itemFlags({ table, row }: ItemRow): number {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags;
}

/**
 * Whether the item can be judged from the table. If its distinct id is an object or array it must
 * be normalised first, because the stored text must not depend on spelling, except if the item is
 * too large.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
