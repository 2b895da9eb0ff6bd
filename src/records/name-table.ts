// A hash table of event names, which the addon and `findFewNames` read. The C++ side
// (addon/find_names.h) has the same numbers and the same hash. Loading the addon compares both.

import { Buffer } from "node:buffer";
import { isPlain, typeAt } from "./item-view.ts";
import { FieldShift, Header, Row, TokenType } from "./table.ts";

/**
 * The words of a slot. Bytes, the length of the name, is 0 in a free slot. The bytes after the name
 * are 0. A name is in one of ProbesMax slots, from that of its hash on.
 */
export const KnownName = { Bytes: 0, Value: 1, Text: 2, Words: 16, ProbesMax: 8 } as const;

/** The words of the argument `rows`. The results of the rows follow. */
export const NamedRows = { First: 0, Count: 1, Results: 2 } as const;

/** Results of rows that are not values of the table. Values are lower. */
export const NameResult = {
  /** The name is not in the table. The index of the slot for it is added. */
  Unknown: 0x8000_0000,
  /** The item is not plain, or its name is not a string of at most 56 bytes without escapes. */
  Unread: 0xffff_ffff,
} as const;

export interface NameFunctions {
  /**
   * Finds the event names of a range of rows. Returns the number of results that are not 0. Throws
   * for wrong arguments.
   */
  readonly findNames: (
    body: Buffer,
    table: Uint32Array,
    slots: Uint32Array,
    rows: Uint32Array,
  ) => number;
}

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

/**
 * Finds the names of a few rows like the addon. For up to about 8 rows, it takes less time than a
 * call of the addon.
 */
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

/** Returns whether a result is that of a name that the table can store. */
export function isUnknown(result: number): boolean {
  return result >= NameResult.Unknown && result !== NameResult.Unread;
}

/** Number of event names that a project with rules remembers. */
const namesKnownMax = 256;

/** A value for each of the last names of events. Clients choose the names, so the size is fixed. */
export class NameTable<Value> {
  #slots: Uint32Array | undefined = undefined;
  readonly #values: (Value | undefined)[] = [];

  /** The argument `slots` of `findNames`. It takes 16 KiB from the first use on. */
  get slots(): Uint32Array {
    this.#slots ??= new Uint32Array(namesKnownMax * KnownName.Words);
    return this.#slots;
  }

  /** Returns the value for a result of `findNames`; undefined for 0 and the values of NameResult. */
  get(result: number): Value | undefined {
    return result > 0 && result < NameResult.Unknown ? this.#values[result - 1] : undefined;
  }

  /**
   * Stores the value of a name whose result is Unknown. If it is undefined, the result of the name
   * is then 0. Values that other results of the same call refer to must be read before, because the
   * name can replace another.
   */
  store(result: number, name: Uint8Array, value: Value | undefined): void {
    const { slots } = this;
    const slot = result - NameResult.Unknown;
    const at = slot * KnownName.Words;
    slots[at + KnownName.Bytes] = name.length;
    slots[at + KnownName.Value] = value === undefined ? 0 : slot + 1;
    slots.fill(0, at + KnownName.Text, at + KnownName.Words);
    new Uint8Array(slots.buffer).set(name, (at + KnownName.Text) * slots.BYTES_PER_ELEMENT);
    this.#values[slot] = value;
  }
}
