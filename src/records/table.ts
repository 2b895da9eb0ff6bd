// The layout of the scan table, which both scanners write and the rules for events read. The C++
// side (addon/event_scan.h) states the same numbers, and loading the addon compares them.
//
// A span is two words, the byte offsets [start, end) of one raw JSON token in the body, quotes
// included. If its type is Absent, it is zero. If a key is repeated, the last one counts.

/** Type of a token, in four bits. */
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
  /** The body is only white space. */
  Empty: 1,
  /**
   * The body is not JSON. Header.ErrorOffset is the first byte at which no JSON text continues like
   * this, or the length.
   */
  InvalidJson: 2,
  /**
   * The body is not UTF-8. Header.ErrorOffset is the first byte of the first malformed sequence.
   */
  InvalidUtf8: 3,
  /** The scanner could not allocate the memory for its index. */
  OutOfMemory: 4,
  /** The body is not Ok, and `scan` returns the reason. Returned only by `scanAtOnce`. */
  Unexplained: 5,
} as const;
export type ScanStatus = (typeof ScanStatus)[keyof typeof ScanStatus];

/** Maximum bytes of a body for which `scanAtOnce` returns the reason. */
export const ScanLimit = { ExplainedAtOnceBytes: 8_192 } as const;

/** Indexes of the words of the table before the first row. */
export const Header = {
  ErrorOffset: 0,
  /**
   * TokenType of the whole body. For an Array, its items are the rows. For anything except Object
   * and Array, no other word is set.
   */
  RootType: 1,
  /**
   * TokenType of the envelope's `batch`. If it is Absent in an object, the body is one event, in
   * row 0.
   */
  BatchType: 2,
  /**
   * Number of items in `batch` or in the array, or 1 for one event, including items for which the
   * table has no rows.
   */
  ItemCount: 3,
  /** Number of rows written by the last `scan` or `scanMore`. */
  RowCount: 4,
  /**
   * The key that the body is sent with: the first value other than null or "" among the possible
   * places. In an envelope these are `api_key`, then `token`. In an event they are also `$token`,
   * then `properties.token`. For an array it is the key of the first item that has one. Names
   * written with escapes are recognised too.
   */
  KeyType: 5,
  KeyStart: 6,
  KeyEnd: 7,
  CreatedAtType: 8,
  CreatedAtStart: 9,
  CreatedAtEnd: 10,
  HistoricalType: 11,
  /**
   * TokenType of `sent_at`. If `sent_at` is absent, null or "" and `sentAt` is present, of
   * `sentAt`.
   */
  SentAtType: 12,
  SentAtStart: 13,
  SentAtEnd: 14,
  /** Index in the batch of the item in row 0. */
  FirstItem: 15,
  /**
   * Number of positions that a repair records for malformed UTF-8: `Repair.malformed`. This word
   * and `NonFinite` are 0 unless `RepairedBytes` is set.
   */
  Malformed: 16,
  /**
   * Size in bytes of the repaired body. Set with InvalidUtf8 if the body may be an object or an
   * array. Set with InvalidJson if the body is one except for words for numbers that JSON does not
   * have. Otherwise 0.
   */
  RepairedBytes: 17,
  /**
   * In an array, index of the first item whose key differs from that at KeyType; 0 if no key
   * differs. Two keys are equal if their bytes are equal. They are also equal if their trimmed
   * texts are equal, provided that these are ASCII and written in `keyTokenBytesMax` bytes.
   */
  OtherKeyItem: 18,
  /** Number of positions for `NaN`, `Infinity` and `-Infinity`: `Repair.nonFinite`. */
  NonFinite: 19,
  Words: 20,
} as const;

/**
 * Maximum bytes of a valid key's token. A longer token is invalid, even if it is mostly escapes or
 * white space.
 */
export const keyTokenBytesMax = 4_096;

/** Indexes of the words of a row. Each item has one row. All rows come before all extras. */
export const Row = {
  ItemStart: 0,
  ItemEnd: 1,
  EventStart: 2,
  EventEnd: 3,
  /**
   * Span of `distinct_id`. If it is absent or null and `$distinct_id` is present, of
   * `$distinct_id`.
   */
  DistinctIdStart: 4,
  DistinctIdEnd: 5,
  TimestampStart: 6,
  TimestampEnd: 7,
  /** Span of `uuid`, which is found even if its name has escapes, unlike all other members. */
  UuidStart: 8,
  UuidEnd: 9,
  PropertiesStart: 10,
  PropertiesEnd: 11,
  SetStart: 12,
  SetEnd: 13,
  SetOnceStart: 14,
  SetOnceEnd: 15,
  /**
   * Span of properties.distinct_id or properties.$distinct_id, by the rule of `DistinctIdStart`.
   */
  PropertiesDistinctIdStart: 16,
  PropertiesDistinctIdEnd: 17,
  /** Eight TokenTypes of four bits each, see FieldShift. */
  FieldTypes: 18,
  /** Eight TokenTypes of four bits each, see PropertyShift. */
  PropertyTypes: 19,
  /**
   * TokenTypes of three properties and of the item, whether the item has an extra, and ItemFlag
   * bits. See MoreShift.
   */
  MoreTypes: 20,
  Words: 21,
} as const;

/**
 * Indexes of the words of an extra, which has the fields that few items have. Every row has room
 * for an extra at a fixed position (`extraOf`). Its content has a meaning only if the row has the
 * bit at MoreShift.HasExtra.
 */
export const Extra = {
  /** Span of properties.$set. Its type is also in PropertyTypes. */
  PropertiesSetStart: 0,
  PropertiesSetEnd: 1,
  PropertiesSetOnceStart: 2,
  PropertiesSetOnceEnd: 3,
  PropertiesUnsetStart: 4,
  PropertiesUnsetEnd: 5,
  /** Span of the item's `$unset`. */
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
  /** Eight TokenTypes of four bits each, see ExtraShift. */
  Types: 16,
  Words: 17,
} as const;

/** Bit positions in Row.FieldTypes. */
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

/** Bit positions in Row.PropertyTypes, for reserved keys directly inside `properties`. */
export const PropertyShift = {
  Alias: 0,
  GroupType: 4,
  GroupKey: 8,
  SurveyId: 12,
  Set: 16,
  GroupSet: 20,
  Groups: 24,
  ProcessPersonProfile: 28,
} as const;

/** Bit positions in Row.MoreTypes. */
export const MoreShift = {
  /** TokenType of properties.$current_url. */
  CurrentUrl: 0,
  /** TokenType of properties.$screen_name. */
  ScreenName: 4,
  /**
   * Type of the item itself. If it is not Object, all spans and types of the row are zero except
   * those of the item.
   */
  Item: 8,
  /** TokenType of properties.$ignore_sent_at. */
  IgnoreSentAt: 12,
  /** One bit, set if at least one field of Extra is present. */
  HasExtra: 16,
  /** First of the ItemFlag bits. */
  Flags: 20,
} as const;

/** Bit positions in Extra.Types. */
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
 * Reasons why an item is not plain, as bits at MoreShift.Flags. EscapedKey, DuplicateKey,
 * EscapedInnerKey and ReplacedCharacter cause the slow path, normalisation. TooDeep and LongNumber
 * make the item an error.
 */
export const ItemFlag = {
  /** A key of the item or of its `properties` is written with an escape. */
  EscapedKey: 1,
  /**
   * An unescaped key is repeated in one object: in `properties`, or further inside. Repeated keys
   * of the item itself do not count, because the table has the last one of each.
   */
  DuplicateKey: 2,
  /** A string anywhere in the item, key or value, has \u0000 or an escaped lone surrogate. */
  ReplacedCharacter: 4,
  /** Objects and arrays are nested more than `depthMax` deep, including the item. */
  TooDeep: 8,
  /** A number has more than `numberDigitsMax` digits. */
  LongNumber: 16,
  /** A key of an object further inside than `properties` is written with an escape. */
  EscapedInnerKey: 32,
} as const;

/**
 * Maximum depth of nested objects and arrays. Many JSON readers have a limit: ClickHouse and
 * simdjson stop at about 1,000 levels, others at 128.
 */
export const depthMax = 100;
/**
 * Maximum number of digits of a number. Python reads no integer with more than 4,300 digits, and no
 * double has more than 309 before its decimal point.
 */
export const numberDigitsMax = 400;

/**
 * Maximum number of recorded positions of either kind in a repair. Later ones are replaced anyway.
 */
export const repairPlacesMax = 1_048_576;

/**
 * Number of bytes by which a repaired text may exceed the input so far. Above it, "?" replaces
 * malformed UTF-8, so that no text grows to three times its length.
 */
export const growthBytesMax = 2_097_152;

/** State of the repair of a body. */
export interface Repair {
  /** Repaired text, of Header.RepairedBytes bytes. */
  readonly text: Buffer;
  /**
   * Offsets in the text at which malformed UTF-8 is replaced for the first time after each `{`,
   * ascending; Header.Malformed offsets. They identify the events with a replacement.
   */
  readonly malformed: Uint32Array;
  /**
   * Offsets of `null` in place of a number, by the rule of `malformed`; Header.NonFinite offsets.
   */
  readonly nonFinite: Uint32Array;
  /**
   * Five words: number of bytes read, number of bytes written, number of offsets in `malformed`,
   * number of offsets in `nonFinite`, and the state of the scanner. Initially zeros.
   */
  readonly progress: Uint32Array;
}

/** Results of `normalise` if it failed. */
export const NotNormal = { NotJson: -1, OutOfMemory: -2 } as const;

/** Returns the number of words of a table with room for `rows` rows. */
export function tableWords(rows: number): number {
  return Header.Words + rows * (Row.Words + Extra.Words);
}

/** Returns the number of rows for which a table has room. */
export function tableRows(table: Uint32Array): number {
  return ((table.length - Header.Words) / (Row.Words + Extra.Words)) | 0;
}

/**
 * Returns the word at which the extra of the row at word `row` begins, whether or not the item has
 * one.
 */
export function extraOf(table: Uint32Array, row: number): number {
  return (
    Header.Words +
    tableRows(table) * Row.Words +
    (((row - Header.Words) / Row.Words) | 0) * Extra.Words
  );
}

/** Whether the row at word `row` has an extra. */
export function hasExtra(table: Uint32Array, row: number): boolean {
  return ((table[row + Row.MoreTypes]! >>> MoreShift.HasExtra) & 1) !== 0;
}

/** Maximum number of rows that one scan fills. `scanMore` returns the rest of a longer batch. */
export const rowsMax = 65_536;

/**
 * A scanner with the table that it fills. It scans one body at a time. The table is valid until the
 * next `scan` or `scanMore`, of either kind; `normalise` and `repair` do not change the table.
 * `scanMore` takes the body of the last `scan`, which must be unchanged.
 *
 * A body that scans Ok is valid JSON in every byte (exactly what JSON.parse accepts, given valid
 * UTF-8). Raw line breaks between its tokens have been overwritten with spaces, so that any slice
 * of it fits one NDJSON line. A body that does not scan Ok is unchanged.
 */
export interface Scanner {
  readonly table: Uint32Array;
  scan(body: Buffer): ScanStatus;
  /** Scans body.subarray(start, end) without creating a view. Offsets count from `start`. */
  scanPart(body: Buffer, start: number, end: number): ScanStatus;
  /**
   * Scans the body, but does not locate the error in a long body, which would take longer than the
   * scan.
   */
  scanAtOnce(body: Buffer): ScanStatus;
  /**
   * Fills the table with the next rows, and sets Header.FirstItem and Header.RowCount. RowCount is
   * 0 if no rows are left.
   */
  scanMore(body: Buffer): void;
  /**
   * Writes the plain form of the JSON value body[start, end) to the target at `at`, which must have
   * room for as many bytes as the value has. Returns the number of bytes written. In plain form,
   * each string has one spelling, with U+FFFD for U+0000 and lone surrogates. Only the last member
   * of each name is retained. Numbers are unchanged, and there is no white space. A negative result
   * is one of NotNormal. NotJson also means a value deeper than `depthMax`. The target must not be
   * part of the body.
   */
  normalise(body: Buffer, start: number, end: number, target: Buffer, at: number): number;
  /**
   * Continues the repair of a body for which a scan has set Header.RepairedBytes, until `until`
   * bytes of the body are read, or a few more. U+FFFD replaces each malformed sequence, as in the
   * WHATWG's decoder, and "?" after `growthBytesMax`. A surrogate pair written as two sequences
   * (CESU-8) becomes its character. `null` replaces `NaN`, `Infinity` and `-Infinity` outside of
   * strings.
   */
  repair(body: Buffer, until: number, repair: Repair): void;
}

/**
 * A scanner that can also work in the thread pool, so that a large body does not block the event
 * loop. The results are those of `scan` and `scanMore`, and line breaks are overwritten too. Only
 * one call of either kind may run at a time. Until the promise of a call is fulfilled or rejected,
 * every other call throws or rejects.
 *
 * During a call, neither the body nor the table may be accessed: not written, not read, and above
 * all not transferred, detached or resized. The scan runs on memory that Node-API cannot pin. If
 * the memory is taken away, the scan detects the loss only afterwards, and then rejects.
 */
export interface BackgroundScanner extends Scanner {
  /**
   * Scans in the thread pool. Rejects only for misuse: with an Error (busy) or a TypeError (wrong
   * arguments, memory taken away).
   */
  scanInBackground(body: Buffer): Promise<ScanStatus>;
  /** Runs `scanMore` in the thread pool. Rejects only for misuse. */
  scanMoreInBackground(body: Buffer): Promise<void>;
  /** Ends the scan of a body before all rows were requested, and frees a large index. */
  finish(): void;
  /**
   * Calls `finish`, and frees the memory that is retained for the next scan. `finish` and `release`
   * throw only for misuse.
   */
  release(): void;
}
