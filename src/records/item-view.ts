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
  // The scanner writes only numbers of TokenType to these four bits.
  return ((word >>> shift) & 0xf) as TokenType;
}

/** Returns the types of rare fields, at the positions in ExtraShift; 0 if the row has no extra. */
export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Returns whether a value counts as absent. Clients may send null for an absent value. */
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

/** Returns the reasons why an item is not plain; 0 for a plain item. */
export function itemFlags({ table, row }: ItemRow): number {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags;
}

/**
 * Returns whether the rules can read the item from the table. If the distinct id is an object or
 * array, the item must be normalised first, because the stored text must not depend on spelling.
 * The exception is an item that is too large.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
