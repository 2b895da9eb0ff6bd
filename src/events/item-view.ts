// One item of a body as the rules and the record writer see it: where it is in the scan table, and
// what its tokens are.

import type { Buffer } from "node:buffer";
import { Extra, extraOf, FieldShift, hasExtra, MoreShift, Row, TokenType } from "../scan/table.ts";

/** The first word of an item's row, in a scan table. */
export interface ItemRow {
  readonly table: Uint32Array;
  readonly row: number;
}

/** An item: its row, and the body that the table is of. */
export interface ItemView extends ItemRow {
  readonly body: Buffer;
}

type StringToken = typeof TokenType.PlainString | typeof TokenType.EscapedString;

export function typeAt(word: number, shift: number): TokenType {
  // Four bits that the addon has written: it writes no other numbers there than those of TokenType.
  return ((word >>> shift) & 0xf) as TokenType;
}

/**
 * TokenTypes of what few items have, see ExtraShift; 0, which is Absent for each, where an item has
 * nothing of it.
 */
export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

/** A string with something in it. */
export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Absent, as far as an event is concerned: clients write null for "none". */
export function isNothing(
  type: TokenType,
): type is typeof TokenType.Absent | typeof TokenType.Null {
  return type === TokenType.Absent || type === TokenType.Null;
}

/** Sent as an object, or not sent. */
export function isObjectOrNothing(type: TokenType): boolean {
  return type === TokenType.Object || isNothing(type);
}

/** A value that can name something: a string that is not empty, or a number. */
export function isName(type: TokenType): boolean {
  return isString(type) || type === TokenType.Number;
}

/** The bit that objects and arrays have and no other type, in both places of a distinct id. */
const containerBit = TokenType.Object & TokenType.Array;
const containerDistinctIds =
  (containerBit << FieldShift.DistinctId) | (containerBit << FieldShift.PropertiesDistinctId);

/** ItemFlag bits: 0 where the scan has seen all there is of the item. */
export function itemFlags({ table, row }: ItemRow): number {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags;
}

/**
 * Whether the table says all there is to say of the item. A distinct id that is an object or array
 * is to be compact text, and the same however its strings were written.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
