import type { Buffer } from "node:buffer";
import { Extra, extraOf, FieldShift, hasExtra, MoreShift, Row, TokenType } from "./table.ts";

/** An item. `row` is the index of its row's first word. */
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

/** Returns the TokenTypes of rare fields, see ExtraShift; 0 without an extra. */
export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Returns whether a value is absent. Clients also send null for that. */
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

/** The bit that only the types Object and Array have. */
const containerBit = TokenType.Object & TokenType.Array;
const containerDistinctIds =
  (containerBit << FieldShift.DistinctId) | (containerBit << FieldShift.PropertiesDistinctId);

/** Returns the reasons why an item is not plain; 0 if it is. */
export function itemFlags({ table, row }: ItemRow): number {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags;
}

/**
 * Returns whether the item can be judged from the table. If its distinct id is an object or array
 * it must be normalised first, because the stored text must not depend on spelling, except if the
 * item is too large.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
