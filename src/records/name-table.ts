// A hash table of event names, in the form that the addon and few-names.ts read. The C++ side
// (addon/find_names.h) has the same numbers. Loading the addon compares both.

import type { Buffer } from "node:buffer";

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
