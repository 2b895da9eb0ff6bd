// Finds the event names of a few rows in the hash table of names, like findNames of the addon. Its
// four arrays make a call of the addon expensive. addon/find_names.cc has the same hash.

import { Buffer } from "node:buffer";
import { isPlain, typeAt } from "./item-view.ts";
import { KnownName, NamedRows, type NameFunctions, NameResult } from "./name-table.ts";
import { FieldShift, Header, Row, TokenType } from "./table.ts";

const nameBytesMax = (KnownName.Words - KnownName.Text) * Uint32Array.BYTES_PER_ELEMENT;

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** Returns the last 4 bytes of a name as a word, whose lower bytes are 0 if the name is shorter. */
function lastWordOf(bytes: Uint8Array, start: number, end: number): number {
  if (end - start >= 4) return wordAt(bytes, end - 4);
  let word = 0;
  for (let at = start; at < end; at++) word = (word >>> 8) | (bytes[at]! << 24);
  return word;
}

/** A hash over all words of a name, like known_name_hash in addon/find_names.cc. */
function nameHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at + 4 < end; at += 4)
    hash = Math.imul(hash ^ wordAt(bytes, at), 0x85eb_ca6b);
  hash = Math.imul(hash ^ lastWordOf(bytes, start, end), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2_ae35);
  return hash ^ (hash >>> 15);
}

function hashOf(name: string): number {
  const bytes = Buffer.from(name);
  return nameHash(bytes, 0, bytes.length) >>> 0;
}

/** Hashes of samples. They differ if the addon has another hash function. */
export const KnownNameHash = { Short: hashOf("e"), Long: hashOf("button clicked") } as const;

/** For up to about 8 rows, this takes less time than a call of the addon. */
export const findFewNames: NameFunctions["findNames"] = (body, table, slots, rows) => {
  const count = rows[NamedRows.Count]!;
  let row = Header.Words + rows[NamedRows.First]! * Row.Words;
  let others = 0;
  for (let at = 0; at < count; at++, row += Row.Words) {
    const result = resultOf(body, table, row, slots);
    rows[NamedRows.Results + at] = result;
    if (result !== 0) others++;
  }
  return others;
};

function resultOf(body: Buffer, table: Uint32Array, row: number, slots: Uint32Array): number {
  const type = typeAt(table[row + Row.FieldTypes]!, FieldShift.Event);
  if (type !== TokenType.PlainString || !isPlain({ table, row })) return NameResult.Unread;
  const start = table[row + Row.EventStart]! + 1;
  const end = table[row + Row.EventEnd]! - 1;
  if (start >= end || end - start > nameBytesMax || end > body.length) return NameResult.Unread;
  const hash = nameHash(body, start, end);
  const mask = (slots.length / KnownName.Words - 1) | 0;
  for (let probe = 0; probe < KnownName.ProbesMax; probe++) {
    const slot = (hash + probe) & mask;
    const at = slot * KnownName.Words;
    const bytes = slots[at + KnownName.Bytes]!;
    if (bytes === 0) return NameResult.Unknown + slot;
    if (bytes === end - start && isText(slots, at + KnownName.Text, { body, start, end }))
      return slots[at + KnownName.Value]!;
  }
  // Other bits of the hash choose the name to replace.
  return NameResult.Unknown + ((hash + ((hash >>> 24) % KnownName.ProbesMax)) & mask);
}

/** Returns whether a name is that of a slot, whose text begins at a word. */
function isText(
  slots: Uint32Array,
  text: number,
  { body, start, end }: { body: Buffer; start: number; end: number },
): boolean {
  let word = text;
  let at = start;
  for (; at + 4 < end; at += 4) if ((slots[word++]! | 0) !== wordAt(body, at)) return false;
  return slots[word] === lastWordOf(body, start, end) >>> (32 - 8 * (end - at));
}
