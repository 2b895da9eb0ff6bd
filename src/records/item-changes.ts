// The layout of the changes to items, from which the addon writes their texts. The C++ side
// (addon/change_items.h) has the same numbers. Loading the addon compares both.

import type { Buffer } from "node:buffer";

/** The words of a change. Its edits follow. */
export const Change = {
  /** The index of the item's row in the table. */
  Row: 0,
  Edits: 1,
  /** The word Row.FieldTypes of the changed item. */
  FieldTypes: 2,
  PropertyTypes: 3,
  /** 1 if the text must be scanned, because the row of the sent item cannot be corrected. */
  NeedsScan: 4,
  Words: 5,
} as const;

export const Edit = { Start: 0, End: 1, TextStart: 2, TextEnd: 3, Words: 4 } as const;

export const EditText = {
  /** The value of TextEnd if the text is the hash of the replaced value. */
  Hashed: 0xffff_ffff,
  /** The bytes of a hash as JSON. */
  HashBytes: 66,
} as const;

export interface ChangeFunctions {
  /**
   * Writes each changed text with brackets around it to the target, and the row of the n-th change
   * as the n-th row of `targetTable`. If the change has NeedsScan, only the span of the row is
   * valid, and Row.MoreTypes is 0. Overwrites the edits. Returns the end of the last text. Throws if
   * an offset is outside or if there is no room.
   */
  readonly changeItems: (
    body: Buffer,
    table: Uint32Array,
    changes: Uint32Array,
    texts: Buffer,
    secret: Uint8Array,
    target: Buffer,
    targetTable: Uint32Array,
  ) => number;
}
