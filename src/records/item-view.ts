import type { Buffer } from "node:buffer";
import { Extra, extraOf, FieldShift, hasExtra, MoreShift, Row, TokenType } from "./table.ts";

export interface ItemRow {
  readonly table: Uint32Array;
  readonly row: number;
}

export interface ItemView extends ItemRow {
  readonly body: Buffer;
}

/** The members of an event that the gateway reads. It stores no other member next to `properties`. */
export const eventMembers: readonly string[] = [
  "event",
  "distinct_id",
  "$distinct_id",
  "properties",
  "$set",
  "$set_once",
  "$unset",
  "timestamp",
  "offset",
  "uuid",
  "options",
  "session_id",
  "window_id",
];

type StringToken = typeof TokenType.PlainString | typeof TokenType.EscapedString;

export function typeAt(word: number, shift: number): TokenType {
  return ((word >>> shift) & 0xf) as TokenType;
}

export function extraTypes({ table, row }: ItemRow): number {
  return hasExtra(table, row) ? table[extraOf(table, row) + Extra.Types]! : 0;
}

export function isString(type: TokenType): type is StringToken {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

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

const containerBit = TokenType.Object & TokenType.Array;
const containerDistinctIds =
  (containerBit << FieldShift.DistinctId) | (containerBit << FieldShift.PropertiesDistinctId);

export function itemFlags({ table, row }: ItemRow): number {
  return table[row + Row.MoreTypes]! >>> MoreShift.Flags;
}

/**
 * Returns whether an item can be read unchanged. If the distinct id is an object or array, the item
 * must be normalised, because the stored text must not depend on how the client writes it. An item
 * that is too large to be normalised is read unchanged.
 */
export function isPlain(item: ItemRow): boolean {
  return (
    itemFlags(item) === 0 && (item.table[item.row + Row.FieldTypes]! & containerDistinctIds) === 0
  );
}
