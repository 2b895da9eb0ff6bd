// Finds the values of event names, like the addon, but by comparing decoded texts with all slots.

import { isPlain } from "../../../src/records/item-view.ts";
import {
  KnownName,
  NamedRows,
  type NameFunctions,
  NameResult,
} from "../../../src/records/name-table.ts";
import { FieldShift, Header, Row, TokenType } from "../../../src/records/table.ts";

const nameBytesMax = (KnownName.Words - KnownName.Text) * Uint32Array.BYTES_PER_ELEMENT;

export const findNamesInSlots: NameFunctions["findNames"] = (body, table, slots, rows) => {
  const [first, count] = [rows[NamedRows.First]!, rows[NamedRows.Count]!];
  const known = namesIn(slots);
  for (let at = 0; at < count; at++) {
    const name = nameOf(body, table, Header.Words + (first + at) * Row.Words);
    rows[NamedRows.Results + at] =
      name === undefined
        ? NameResult.Unread
        : (known.get(name) ?? NameResult.Unknown + freeSlotOf(slots));
  }
  return rows.subarray(NamedRows.Results, NamedRows.Results + count).filter(Boolean).length;
};

function namesIn(slots: Uint32Array): Map<string, number> {
  const names = new Map<string, number>();
  for (let at = 0; at < slots.length; at += KnownName.Words) {
    const start = (at + KnownName.Text) * slots.BYTES_PER_ELEMENT;
    const bytes = Buffer.from(slots.buffer, start, slots[at + KnownName.Bytes]!);
    if (bytes.length > 0) names.set(bytes.toString(), slots[at + KnownName.Value]!);
  }
  return names;
}

/** Returns the name of a plain item, if it is a short string without escapes. */
function nameOf(body: Buffer, table: Uint32Array, row: number): string | undefined {
  const token = body.toString("utf8", table[row + Row.EventStart], table[row + Row.EventEnd]);
  const type = (table[row + Row.FieldTypes]! >>> FieldShift.Event) & 15;
  const isRead = isPlain({ table, row }) && type === TokenType.PlainString;
  return isRead && Buffer.byteLength(token) <= nameBytesMax + 2 ? JSON.parse(token) : undefined;
}

function freeSlotOf(slots: Uint32Array): number {
  for (let at = 0; at < slots.length; at += KnownName.Words)
    if (slots[at + KnownName.Bytes] === 0) return at / KnownName.Words;
  return 0;
}
