import type { Buffer } from "node:buffer";
import { Extra, extraOf, FieldShift, hasExtra, MoreShift, Row, TokenType } from "./table.ts";

export interface ItemRow {
  readonly table: Uint32Array;
  /** The index of the row's first word. */
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

/** Returns the types of rare fields, at the positions in ExtraShift; 0 if there is no extra. */
export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Returns whether a value is absent. Clients also send null for an absent value. */
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
 * Returns whether the item can be judged from the table. An item whose distinct id is an object or
 * array must be normalised first, unless it is too large, because the stored text must not depend
 * on spelling.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
