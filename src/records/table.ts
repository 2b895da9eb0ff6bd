// The layout of the scan table. The scanner writes the table, and the rules for events read it.
// addon/event_scan.h contains the same numbers. Both are compared when the addon is loaded. A span
// consists of two words: the start and the end of a JSON token, including its quotes. If the value
// is absent, both words are 0.

import type { ChangeFunctions } from "./item-changes.ts";
import type { NameFunctions } from "./name-table.ts";

export const TokenType = {
  Absent: 0,
  Null: 1,
  False: 2,
  True: 3,
  Number: 4,
  PlainString: 5,
  EscapedString: 6,
  EmptyString: 7,
  Object: 8,
  Array: 9,
} as const;
export type TokenType = (typeof TokenType)[keyof typeof TokenType];

export const ScanStatus = {
  Ok: 0,
  Empty: 1,
  /** Header.ErrorOffset is the first byte that makes the text invalid JSON. */
  InvalidJson: 2,
  /** Header.ErrorOffset is the first byte of the first malformed UTF-8 sequence. */
  InvalidUtf8: 3,
  OutOfMemory: 4,
  /** The body is not Ok. Only `scanAtOnce` returns this. `scan` would return the reason. */
  Unexplained: 5,
} as const;
export type ScanStatus = (typeof ScanStatus)[keyof typeof ScanStatus];

export const ScanLimit = { ExplainedAtOnceBytes: 8_192 } as const;

export const Header = {
  ErrorOffset: 0,
  /** The words after this one are valid only if the root is an object or an array. */
  RootType: 1,
  /** The type of the member `batch`. An object without `batch` is a single event, in row 0. */
  BatchType: 2,
  /** The number of all items, including those that have no row. It is 1 for a single event. */
  ItemCount: 3,
  RowCount: 4,
  /**
   * The API key. This is the first of `api_key` and `token` that is not null or "". In an event,
   * `$token` and `properties.token` count as well. In an array, the first item that has a key
   * counts.
   */
  KeyType: 5,
  KeyStart: 6,
  KeyEnd: 7,
  CreatedAtType: 8,
  CreatedAtStart: 9,
  CreatedAtEnd: 10,
  HistoricalType: 11,
  /** The value of `sent_at`. If it is absent, null or "", this is the value of `sentAt`. */
  SentAtType: 12,
  SentAtStart: 13,
  SentAtEnd: 14,
  FirstItem: 15,
  /** The length of `Repair.malformed`. It is 0 if RepairedBytes is 0. */
  Malformed: 16,
  /**
   * The size of the repaired body, or 0 if it cannot be repaired. Invalid JSON can be repaired only
   * if NaN and infinities are its only errors.
   */
  RepairedBytes: 17,
  /**
   * The first item whose key differs from the key at KeyType, or 0. Long keys are
   * compared byte by byte.
   */
  OtherKeyItem: 18,
  /** The length of `Repair.nonFinite`. It is 0 if RepairedBytes is 0. */
  NonFinite: 19,
  Words: 20,
} as const;

/**
 * The limit is higher than the length of a key, because a token may consist mostly of escapes or
 * white space.
 */
export const keyTokenBytesMax = 4_096;

/** The table first contains all rows, and then all extras. */
export const Row = {
  ItemStart: 0,
  ItemEnd: 1,
  EventStart: 2,
  EventEnd: 3,
  DistinctIdStart: 4,
  DistinctIdEnd: 5,
  TimestampStart: 6,
  TimestampEnd: 7,
  /** The uuid is found even if its name has escapes, unlike all other members. */
  UuidStart: 8,
  UuidEnd: 9,
  PropertiesStart: 10,
  PropertiesEnd: 11,
  SetStart: 12,
  SetEnd: 13,
  SetOnceStart: 14,
  SetOnceEnd: 15,
  PropertiesDistinctIdStart: 16,
  PropertiesDistinctIdEnd: 17,
  FieldTypes: 18,
  PropertyTypes: 19,
  MoreTypes: 20,
  Words: 21,
} as const;

/** Fields that few items have. They are valid only if the bit MoreShift.HasExtra is set. */
export const Extra = {
  PropertiesSetStart: 0,
  PropertiesSetEnd: 1,
  PropertiesSetOnceStart: 2,
  PropertiesSetOnceEnd: 3,
  PropertiesUnsetStart: 4,
  PropertiesUnsetEnd: 5,
  UnsetStart: 6,
  UnsetEnd: 7,
  OffsetStart: 8,
  OffsetEnd: 9,
  SessionIdStart: 10,
  SessionIdEnd: 11,
  WindowIdStart: 12,
  WindowIdEnd: 13,
  OptionsStart: 14,
  OptionsEnd: 15,
  Types: 16,
  Words: 17,
} as const;

export const FieldShift = {
  Event: 0,
  DistinctId: 4,
  Timestamp: 8,
  Uuid: 12,
  Properties: 16,
  Set: 20,
  SetOnce: 24,
  PropertiesDistinctId: 28,
} as const;

export const PropertyShift = {
  SurveyId: 0,
  Set: 4,
  GroupSet: 8,
  Groups: 12,
  ProcessPersonProfile: 16,
  CurrentUrl: 20,
  ScreenName: 24,
  IgnoreSentAt: 28,
} as const;

export const MoreShift = {
  /** The type of the item. If it is not Object, the other words of the row are 0, except its span. */
  Item: 0,
  HasExtra: 4,
  Flags: 8,
} as const;

export const ExtraShift = {
  PropertiesSet: 0,
  PropertiesSetOnce: 4,
  PropertiesUnset: 8,
  Unset: 12,
  Offset: 16,
  SessionId: 20,
  WindowId: 24,
  Options: 28,
} as const;

/**
 * The reasons why an item is not in plain form. An item with TooDeep or LongNumber is an error.
 * Other items are normalised.
 */
export const ItemFlag = {
  EscapedKey: 1,
  /** An object inside of the item has a repeated key. Keys of the item itself do not count. */
  DuplicateKey: 2,
  /** The item contains \u0000 or an escaped lone surrogate. */
  ReplacedCharacter: 4,
  TooDeep: 8,
  LongNumber: 16,
  /** An object that is nested deeper than `properties` has a key with an escape. */
  EscapedInnerKey: 32,
} as const;

/**
 * The maximum number of nested levels. ClickHouse and simdjson accept about 1,000 levels, but some
 * readers accept only 128.
 */
export const depthMax = 100;
/**
 * The maximum number of digits. Python reads 4,300 digits. A double has at most 309 digits before
 * the decimal point.
 */
export const numberDigitsMax = 400;

export const repairPlacesMax = 1_048_576;

/**
 * Replacing malformed UTF-8 by U+FFFD can triple the length. When a text has grown by this much,
 * "?" is used instead.
 */
export const growthBytesMax = 2_097_152;

export interface Repair {
  readonly text: Buffer;
  /**
   * The offsets of malformed UTF-8 that was replaced, in ascending order. Only the first one after
   * each `{` is listed, which is enough to find the events.
   */
  readonly malformed: Uint32Array;
  /**
   * The offsets of `null` that replaces a number, in ascending order. Only the first one after each
   * `{` is listed.
   */
  readonly nonFinite: Uint32Array;
  /**
   * The number of bytes read and written, the numbers of offsets, and the state of the scanner. All
   * are 0 at first.
   */
  readonly progress: Uint32Array;
}

export const NotNormal = { NotJson: -1, OutOfMemory: -2 } as const;

export function tableWords(rows: number): number {
  return Header.Words + rows * (Row.Words + Extra.Words);
}

export function tableRows(table: Uint32Array): number {
  return ((table.length - Header.Words) / (Row.Words + Extra.Words)) | 0;
}

export function extraOf(table: Uint32Array, row: number): number {
  return (
    Header.Words +
    tableRows(table) * Row.Words +
    (((row - Header.Words) / Row.Words) | 0) * Extra.Words
  );
}

export function hasExtra(table: Uint32Array, row: number): boolean {
  return ((table[row + Row.MoreTypes]! >>> MoreShift.HasExtra) & 1) !== 0;
}

/** The maximum number of rows. For a longer batch, `scanMore` returns the rest. */
export const rowsMax = 65_536;

/**
 * Scans bodies. The table is valid until the next `scan` or `scanMore`. A body is Ok if it is valid
 * UTF-8 and JSON.parse accepts it. In that case, raw line breaks are replaced by spaces, so that
 * every part of the body can be stored on one line of NDJSON.
 */
export interface Scanner {
  readonly table: Uint32Array;
  scan(body: Buffer): ScanStatus;
  /**
   * Scans body.subarray(start, end) without creating a view. The offsets in the table are relative
   * to `start`.
   */
  scanPart(body: Buffer, start: number, end: number): ScanStatus;
  /**
   * Does the same as `scan`, but does not search for the position of an error in a long body,
   * because this would take longer.
   */
  scanAtOnce(body: Buffer): ScanStatus;
  /**
   * Reads the next rows of the body that was scanned last. The body must not have changed. If there
   * are no more rows, Header.RowCount is 0.
   */
  scanMore(body: Buffer): void;
  readonly planRows: NameFunctions["planRows"];
  /**
   * Finds members of plain items of the body that was scanned last: lists or edits those of rows with
   * such a task, and writes the results and counts of the tasks. `texts` are those of the rules.
   * Returns the number of entries. If there is no space for all entries or changes, the call must be
   * repeated with more. Throws for wrong arguments, and if the body has changed.
   */
  findMembers(
    body: Buffer,
    tasks: Uint32Array,
    texts: Uint8Array,
    slots: Uint32Array,
    found: Uint32Array,
    changes: Uint32Array,
  ): number;
  /** Writes the texts of items that the rules have changed. */
  readonly changeItems: ChangeFunctions["changeItems"];
  /**
   * Writes the plain form of a value, which addon/normalise.h defines. Returns its length, or a
   * negative NotNormal. The target must have at least the size of the value, and must not overlap
   * it.
   */
  normalise(body: Buffer, start: number, end: number, target: Buffer, at: number): number;
  /** Repairs the body up to about `until`. addon/text_repair.h lists the replacements. */
  repair(body: Buffer, until: number, repair: Repair): void;
}

export type MemberFinder = Pick<Scanner, "findMembers">;

/**
 * A scanner that also works on the thread pool. Until the promise of a call settles, every other
 * call throws or rejects. During this time, the body and the table must not be accessed,
 * transferred, detached or resized.
 */
export interface BackgroundScanner extends Scanner {
  /** Rejects only for misuse: with an Error if the scanner is busy, or with a TypeError. */
  scanInBackground(body: Buffer): Promise<ScanStatus>;
  scanMoreInBackground(body: Buffer): Promise<void>;
  /** Ends a scan early. If the index is large, its memory is freed. */
  finish(): void;
  release(): void;
}
