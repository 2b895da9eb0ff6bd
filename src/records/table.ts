// The layout of the scan table, which the scanner writes and the rules for events read. The C++
// side (addon/event_scan.h) has the same numbers. Loading the addon compares both. A span is two
// words: the offsets [start, end) of a raw JSON token, quotes included. Both words are 0 if the
// value is Absent. If a key is repeated, the last value counts.

import type { MemberFunctions } from "./found-members.ts";

export const TokenType = {
  Absent: 0,
  Null: 1,
  False: 2,
  True: 3,
  Number: 4,
  /** A non-empty string without a backslash. */
  PlainString: 5,
  /** A non-empty string with a backslash. */
  EscapedString: 6,
  EmptyString: 7,
  Object: 8,
  Array: 9,
} as const;
export type TokenType = (typeof TokenType)[keyof typeof TokenType];

export const ScanStatus = {
  Ok: 0,
  Empty: 1,
  /** Not JSON. Header.ErrorOffset is the first byte that cannot continue a JSON text. */
  InvalidJson: 2,
  /** Not UTF-8. Header.ErrorOffset is the first byte of the first malformed sequence. */
  InvalidUtf8: 3,
  OutOfMemory: 4,
  /** The body is not Ok. `scan` returns the reason. Only `scanAtOnce` returns Unexplained. */
  Unexplained: 5,
} as const;
export type ScanStatus = (typeof ScanStatus)[keyof typeof ScanStatus];

/** Maximum bytes of a body for which `scanAtOnce` returns the reason. */
export const ScanLimit = { ExplainedAtOnceBytes: 8_192 } as const;

/** Indexes of the words before the first row. */
export const Header = {
  ErrorOffset: 0,
  /** TokenType of the root. Unless it is Object or Array, there are no further words. */
  RootType: 1,
  /** TokenType of `batch`. An object without `batch` is one event, in row 0. */
  BatchType: 2,
  /** The number of items of `batch` or the array, with or without a row; 1 for a single event. */
  ItemCount: 3,
  RowCount: 4,
  /**
   * The API key of the body: the first value other than null or "" of `api_key` and `token`. In an
   * event, `$token` and `properties.token` count too. In an array, it is the key of the first item
   * that has a key. Names may be written with escapes.
   */
  KeyType: 5,
  KeyStart: 6,
  KeyEnd: 7,
  CreatedAtType: 8,
  CreatedAtStart: 9,
  CreatedAtEnd: 10,
  HistoricalType: 11,
  /** `sent_at`, or `sentAt` if `sent_at` is absent, null or "". */
  SentAtType: 12,
  SentAtStart: 13,
  SentAtEnd: 14,
  /** Index in the batch of the item in row 0. */
  FirstItem: 15,
  /** The length of `Repair.malformed`. Malformed and NonFinite are 0 if RepairedBytes is 0. */
  Malformed: 16,
  /**
   * Size of the repaired body; 0 if the body cannot be repaired. Set with InvalidUtf8 if the body
   * may be an object or an array. Set with InvalidJson if the only errors are non-finite numbers,
   * such as NaN.
   */
  RepairedBytes: 17,
  /**
   * The first item of an array whose key differs from the key at KeyType, or 0. Keys are equal if
   * their bytes are equal, or if their trimmed ASCII texts of at most `keyTokenBytesMax` bytes are
   * equal.
   */
  OtherKeyItem: 18,
  /** The length of `Repair.nonFinite`: the positions of `NaN`, `Infinity` and `-Infinity`. */
  NonFinite: 19,
  Words: 20,
} as const;

/** Maximum bytes of a key's token. The token may be mostly escapes or white space. */
export const keyTokenBytesMax = 4_096;

/** Indexes of the words of a row. Each item has one row. All rows come before all extras. */
export const Row = {
  ItemStart: 0,
  ItemEnd: 1,
  EventStart: 2,
  EventEnd: 3,
  /** `distinct_id`, or `$distinct_id` if `distinct_id` is absent or null. */
  DistinctIdStart: 4,
  DistinctIdEnd: 5,
  TimestampStart: 6,
  TimestampEnd: 7,
  /** The uuid. Unlike other members, it is found even if its name has escapes. */
  UuidStart: 8,
  UuidEnd: 9,
  PropertiesStart: 10,
  PropertiesEnd: 11,
  SetStart: 12,
  SetEnd: 13,
  SetOnceStart: 14,
  SetOnceEnd: 15,
  /** `properties.distinct_id`, or `properties.$distinct_id` if the former is absent or null. */
  PropertiesDistinctIdStart: 16,
  PropertiesDistinctIdEnd: 17,
  FieldTypes: 18,
  PropertyTypes: 19,
  /** TokenType of the item, MoreShift.HasExtra, and ItemFlag bits. */
  MoreTypes: 20,
  Words: 21,
} as const;

/**
 * Indexes of the words of an extra, which has the fields that few items have. Every row has space
 * for an extra at `extraOf`. The words have a meaning only if the bit at MoreShift.HasExtra is set.
 */
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

/** The bit positions in Row.FieldTypes. */
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

/** The bit positions in Row.PropertyTypes, for reserved keys directly inside `properties`. */
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

/** The bit positions in Row.MoreTypes. */
export const MoreShift = {
  /** TokenType of the item. If it is not Object, all other words of the row are zero. */
  Item: 0,
  /** A bit that is set if at least one field of Extra is present. */
  HasExtra: 4,
  Flags: 8,
} as const;

/** The bit positions in Extra.Types. */
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
 * Reasons why an item is not plain, as bits at MoreShift.Flags. TooDeep and LongNumber make the
 * item an error. The other bits cause the slow path, normalisation.
 */
export const ItemFlag = {
  /** A key of the item or of its `properties` has an escape. */
  EscapedKey: 1,
  /** A key is repeated in `properties` or deeper. Repeats in the item itself do not count. */
  DuplicateKey: 2,
  /** A key or string anywhere in the item has \u0000 or an escaped lone surrogate. */
  ReplacedCharacter: 4,
  /** The item is nested more than `depthMax` deep, counting the item. */
  TooDeep: 8,
  /** A number has more than `numberDigitsMax` digits. */
  LongNumber: 16,
  /** A key of an object deeper than `properties` has an escape. */
  EscapedInnerKey: 32,
} as const;

/** Maximum nesting. ClickHouse and simdjson accept about 1,000 levels, some readers only 128. */
export const depthMax = 100;
/** Maximum digits of a number. Python reads 4,300. No double has more than 309 integer digits. */
export const numberDigitsMax = 400;

/** Maximum number of recorded positions of each kind. Later replacements are not recorded. */
export const repairPlacesMax = 1_048_576;

/** Growth of a text after which "?" replaces malformed UTF-8. No text may triple its length. */
export const growthBytesMax = 2_097_152;

export interface Repair {
  readonly text: Buffer;
  /** Offsets of the first replaced UTF-8 after each `{`, ascending, to identify the events. */
  readonly malformed: Uint32Array;
  /** Offsets of the first `null` in place of a number after each `{`, ascending. */
  readonly nonFinite: Uint32Array;
  /** Bytes read and written, numbers of offsets, and the scanner's state. All are 0 at first. */
  readonly progress: Uint32Array;
}

export const NotNormal = { NotJson: -1, OutOfMemory: -2 } as const;

export function tableWords(rows: number): number {
  return Header.Words + rows * (Row.Words + Extra.Words);
}

export function tableRows(table: Uint32Array): number {
  return ((table.length - Header.Words) / (Row.Words + Extra.Words)) | 0;
}

/** Returns the word at which the row's extra begins, whether or not the item has an extra. */
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

/** Maximum rows of a scan. `scanMore` returns the rest of a longer batch. */
export const rowsMax = 65_536;

/**
 * Scans one body at a time into its table. The table is valid until the next `scan` or `scanMore`.
 * A body is Ok if it is valid UTF-8 and JSON.parse accepts it. In an Ok body, the scan overwrites
 * raw line breaks with spaces, so that any slice fits one NDJSON line. Other bodies stay unchanged.
 */
export interface Scanner {
  readonly table: Uint32Array;
  scan(body: Buffer): ScanStatus;
  /** Scans body.subarray(start, end) without creating a view. Offsets count from `start`. */
  scanPart(body: Buffer, start: number, end: number): ScanStatus;
  /** Scans like `scan`, but does not locate the error in a long body, which would take longer. */
  scanAtOnce(body: Buffer): ScanStatus;
  /**
   * Fills the table with the next rows of the last scanned body, which must be unchanged. Sets
   * Header.FirstItem and Header.RowCount. RowCount is 0 if no rows are left.
   */
  scanMore(body: Buffer): void;
  /** Lists members of plain items by their names. */
  readonly findMembers: MemberFunctions["findMembers"];
  /**
   * Writes the plain form of a JSON value to the target, and returns its length or a negative
   * NotNormal. The target needs as much space as the value, and must not overlap it. A value deeper
   * than `depthMax` is NotJson. In plain form, strings have one spelling, U+FFFD replaces U+0000
   * and lone surrogates, and there is no white space. Of repeated members, only the last stays.
   * Numbers are unchanged.
   */
  normalise(body: Buffer, start: number, end: number, target: Buffer, at: number): number;
  /**
   * Continues a repair until about `until` bytes of the body are read. U+FFFD replaces each
   * malformed sequence, as in the WHATWG's decoder. CESU-8 pairs become their character. `NaN` and
   * infinities outside of strings become `null`.
   */
  repair(body: Buffer, until: number, repair: Repair): void;
}

/**
 * A scanner that can also work in the thread pool, with the same results. Until the promise of a
 * call settles, every other call throws or rejects. Meanwhile, neither the body nor the table may
 * be accessed, transferred, detached or resized. Node-API cannot pin their memory, so the scanner
 * detects a loss only afterwards.
 */
export interface BackgroundScanner extends Scanner {
  /** Scans in the thread pool. Rejects only for misuse, with an Error (busy) or a TypeError. */
  scanInBackground(body: Buffer): Promise<ScanStatus>;
  scanMoreInBackground(body: Buffer): Promise<void>;
  /** Ends the scan of a body before all rows were requested, and frees a large index. */
  finish(): void;
  /** Calls `finish`, and frees retained memory. Both functions throw only for misuse. */
  release(): void;
}
