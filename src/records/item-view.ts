// One item of a body as the rules and the record writer see it: where it is in the scan table, and
// what its tokens are.

import type { Buffer } from "node:buffer";
import { Extra, extraOf, FieldShift, hasExtra, MoreShift, Row, TokenType } from "./table.ts";

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
  // The scanner wrote these four bits, and it writes only numbers of TokenType there.
  return ((word >>> shift) & 0xf) as TokenType;
}

/**
 * The TokenTypes of the fields that few items have, see ExtraShift; 0, which is Absent for each of
 * them, where the item has no extra.
 */
export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

/** Whether the token is a string that is not empty. */
export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

/** Whether the field counts as absent: clients write null for "none". */
export function isNothing(
  type: TokenType,
): type is typeof TokenType.Absent | typeof TokenType.Null {
  return type === TokenType.Absent || type === TokenType.Null;
}

/** Whether the field was sent as an object, or counts as absent. */
export function isObjectOrNothing(type: TokenType): boolean {
  return type === TokenType.Object || isNothing(type);
}

/** Whether the value can name something: it is a string that is not empty, or a number. */
export function isName(type: TokenType): boolean {
  return isString(type) || type === TokenType.Number;
}

/**
 * The one bit that the types Object and Array have and no other type has. The mask holds it for
 * both places of a distinct id.
 */
const containerBit = TokenType.Object & TokenType.Array;
const containerDistinctIds =
  (containerBit << FieldShift.DistinctId) | (containerBit << FieldShift.PropertiesDistinctId);

/** The ItemFlag bits of the item; 0 where nothing needs more than the table says. */
export function itemFlags({ table, row }: ItemRow): number {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags;
}

/**
 * Whether the item can be judged as the table has it. A distinct id that is an object or array
 * makes an item not plain: it is stored as compact text, which is to be the same however its
 * strings were written. In an item that is too large to be normalised it is as the client wrote it.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
