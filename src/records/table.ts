// The layout of the scan table, which the scanner writes and the rules for events read.
// addon/event_scan.h has the same numbers, which are compared when the addon is loaded. A span is
// two words, the offsets [start, end) of a raw JSON token, quotes included; both are 0 if the value
// is Absent.

import type { MemberFunctions } from "./found-members.ts";

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
  /** Header.ErrorOffset is the first byte that cannot continue a JSON text. */
  InvalidJson: 2,
  /** Header.ErrorOffset is the first byte of the first malformed sequence. */
  InvalidUtf8: 3,
  OutOfMemory: 4,
  /** The body is not Ok. `scan` returns the reason. Only `scanAtOnce` returns Unexplained. */
  Unexplained: 5,
} as const;
export type ScanStatus = (typeof ScanStatus)[keyof typeof ScanStatus];

export const ScanLimit = { ExplainedAtOnceBytes: 8_192 } as const;

export const Header = {
  ErrorOffset: 0,
  /** Unless the root is Object or Array, there are no further words. */
  RootType: 1,
  /** An object without `batch` is one event, in row 0. */
  BatchType: 2,
  /** Counts items without a row too; 1 for a single event. */
  ItemCount: 3,
  RowCount: 4,
  /**
   * The first value other than null or "" of `api_key` and `token`. In an event, `$token` and
   * `properties.token` count too. In an array, the first item with a key counts.
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
  FirstItem: 15,
  /** The length of `Repair.malformed`; 0 if RepairedBytes is 0. */
  Malformed: 16,
  /**
   * 0 if the body cannot be repaired. Invalid JSON can be repaired if its only errors are NaN or
   * infinities.
   */
  RepairedBytes: 17,
  /**
   * The first item whose key differs from the key at KeyType, or 0. Long keys are compared by their
   * bytes.
   */
  OtherKeyItem: 18,
  /** The length of `Repair.nonFinite`; 0 if RepairedBytes is 0. */
  NonFinite: 19,
  Words: 20,
} as const;

/** The token may be mostly escapes or white space. */
export const keyTokenBytesMax = 4_096;

/** All rows come before all extras. */
export const Row = {
  ItemStart: 0,
  ItemEnd: 1,
  EventStart: 2,
  EventEnd: 3,
  DistinctIdStart: 4,
  DistinctIdEnd: 5,
  TimestampStart: 6,
  TimestampEnd: 7,
  /** Unlike other members, the uuid is found even if its name has escapes. */
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

/**
 * The fields that few items have. The words have a meaning only if the bit at MoreShift.HasExtra is
 * set.
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
  /** Unless the type is Object, all other words of the row are zero. */
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

/** Why an item is not plain. TooDeep and LongNumber are errors. Other items are normalised. */
export const ItemFlag = {
  EscapedKey: 1,
  /** Repeated keys in the item itself do not count. */
  DuplicateKey: 2,
  /** \u0000 or an escaped lone surrogate. */
  ReplacedCharacter: 4,
  TooDeep: 8,
  LongNumber: 16,
  /** A key of an object deeper than `properties` has an escape. */
  EscapedInnerKey: 32,
} as const;

/** Maximum nesting. ClickHouse and simdjson accept about 1,000 levels, some readers only 128. */
export const depthMax = 100;
/** Python reads 4,300 digits. No double has more than 309 integer digits. */
export const numberDigitsMax = 400;

export const repairPlacesMax = 1_048_576;

/** After this growth, "?" replaces malformed UTF-8, because U+FFFD may triple the length. */
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

/** `scanMore` returns the rest of a longer batch. */
export const rowsMax = 65_536;

/**
 * The table is valid until the next `scan` or `scanMore`. A body is Ok if it is valid UTF-8 and
 * JSON.parse accepts it. In an Ok body, spaces overwrite raw line breaks, so that any slice fits
 * one NDJSON line.
 */
export interface Scanner {
  readonly table: Uint32Array;
  scan(body: Buffer): ScanStatus;
  /** Scans body.subarray(start, end) without creating a view. Offsets count from `start`. */
  scanPart(body: Buffer, start: number, end: number): ScanStatus;
  /** Like `scan`, but does not locate the error in a long body, which would take longer. */
  scanAtOnce(body: Buffer): ScanStatus;
  /** The last scanned body must be unchanged. Header.RowCount is 0 if no rows are left. */
  scanMore(body: Buffer): void;
  /** Lists members of plain items by their names. */
  readonly findMembers: MemberFunctions["findMembers"];
  /**
   * Returns the length or a negative NotNormal. The target needs as much space as the value, and
   * must not overlap it. addon/normalise.h defines the plain form.
   */
  normalise(body: Buffer, start: number, end: number, target: Buffer, at: number): number;
  /** Reads about up to `until`. addon/text_repair.h lists the replacements. */
  repair(body: Buffer, until: number, repair: Repair): void;
}

/**
 * Until the promise of a call settles, every other call throws or rejects, and neither the body nor
 * the table may be accessed, transferred, detached or resized.
 */
export interface BackgroundScanner extends Scanner {
  /** Rejects only for misuse, with an Error (busy) or a TypeError. */
  scanInBackground(body: Buffer): Promise<ScanStatus>;
  scanMoreInBackground(body: Buffer): Promise<void>;
  /** Ends a scan early, and frees a large index. */
  finish(): void;
  release(): void;
}
