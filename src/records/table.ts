// The layout of the scan table, which both scanners write and the rules for events read. The C++
// side (addon/event_scan.h) states the same numbers, and loading
// the addon compares them.
//
// A span is two words, the byte offsets [start, end) of one raw JSON token in the body, quotes
// included. Where its type is Absent it holds zeros. Where a key stands twice, the last counts.

/** The type of a token, which takes four bits. */
export const TokenType = {
  Absent: 0,
  Null: 1,
  False: 2,
  True: 3,
  Number: 4,
  /** Not empty, without a backslash. */
  PlainString: 5,
  /** Not empty, with a backslash. */
  EscapedString: 6,
  EmptyString: 7,
  Object: 8,
  Array: 9,
} as const;
export type TokenType = (typeof TokenType)[keyof typeof TokenType];

export const ScanStatus = {
  Ok: 0,
  /** The body is nothing but white space. */
  Empty: 1,
  /** Header.ErrorOffset: the first byte that no JSON text has there, or its length. */
  InvalidJson: 2,
  /** Header.ErrorOffset is the first byte of the first malformed UTF-8 sequence. */
  InvalidUtf8: 3,
  /** The scanner could not get the memory for its index. */
  OutOfMemory: 4,
  /** From `scanAtOnce` alone: not Ok, and `scan` says why. */
  Unexplained: 5,
} as const;
export type ScanStatus = (typeof ScanStatus)[keyof typeof ScanStatus];

/** `scanAtOnce` says what is wrong with bodies of up to this many bytes. */
export const ScanLimit = { ExplainedAtOnceBytes: 8_192 } as const;

/** The words of the table before the first row. */
export const Header = {
  ErrorOffset: 0,
  /**
   * TokenType of the whole body. For an Array, its items are the rows. For anything but Object and
   * Array, no other word is set.
   */
  RootType: 1,
  /**
   * TokenType of the envelope's `batch`. Where it is Absent in an object, the body is one event, in
   * row 0.
   */
  BatchType: 2,
  /**
   * Items in `batch` or in the array, or 1 for one event. Items for which the table has no rows
   * count too.
   */
  ItemCount: 3,
  /** Rows written by the last `scan` or `scanMore`. */
  RowCount: 4,
  /**
   * The key that the body is sent with: of the places where a key may stand, the first that holds
   * anything but null or "". In an envelope these are `api_key`, then `token`. In an event they are
   * also `$token`, then `properties.token`. For an array it is the key of the first item that has
   * one. Names written with escapes are recognised too.
   */
  KeyType: 5,
  KeyStart: 6,
  KeyEnd: 7,
  CreatedAtType: 8,
  CreatedAtStart: 9,
  CreatedAtEnd: 10,
  HistoricalType: 11,
  /** `sent_at`; but `sentAt` where `sentAt` is there and `sent_at` is absent, null or "". */
  SentAtType: 12,
  SentAtStart: 13,
  SentAtEnd: 14,
  /** Index in the batch of the item in row 0. */
  FirstItem: 15,
  /**
   * The number of places that a repair notes for malformed UTF-8: `Repair.malformed`. This word and
   * `NonFinite` are 0 unless `RepairedBytes` is set.
   */
  Malformed: 16,
  /**
   * Bytes of the repaired body. Set with InvalidUtf8 if the body may be an object or an array, and
   * with InvalidJson if it is one except for words for numbers that JSON does not have; else 0.
   */
  RepairedBytes: 17,
  /**
   * In an array, the index of the first item that has another key than that at KeyType; 0 if there
   * is none. Two keys are the same if their bytes are. They are also the same if their texts
   * without white space around are, where these are ASCII and written in `keyTokenBytesMax` bytes.
   */
  OtherKeyItem: 18,
  /** As `Malformed`, for `NaN`, `Infinity` and `-Infinity`: `Repair.nonFinite`. */
  NonFinite: 19,
  Words: 20,
} as const;

/** A longer token is nobody's key, however much of it is escapes or white space. */
export const keyTokenBytesMax = 4_096;

/** The words of a row. Each item has one row. All rows come before all extras. */
export const Row = {
  ItemStart: 0,
  ItemEnd: 1,
  EventStart: 2,
  EventEnd: 3,
  /** `distinct_id`; but `$distinct_id` where it is there and `distinct_id` is absent or null. */
  DistinctIdStart: 4,
  DistinctIdEnd: 5,
  TimestampStart: 6,
  TimestampEnd: 7,
  /** The member `uuid`, found also if its name has escapes. No other member of an item is. */
  UuidStart: 8,
  UuidEnd: 9,
  PropertiesStart: 10,
  PropertiesEnd: 11,
  SetStart: 12,
  SetEnd: 13,
  SetOnceStart: 14,
  SetOnceEnd: 15,
  /** properties.distinct_id, or properties.$distinct_id by the rule of `DistinctIdStart`. */
  PropertiesDistinctIdStart: 16,
  PropertiesDistinctIdEnd: 17,
  /** Eight TokenTypes, four bits each, see FieldShift. */
  FieldTypes: 18,
  /** Eight TokenTypes, four bits each, see PropertyShift. */
  PropertyTypes: 19,
  /**
   * See MoreShift: TokenTypes of three properties and of the item, whether the item has an extra,
   * and ItemFlag bits.
   */
  MoreTypes: 20,
  Words: 21,
} as const;

/**
 * The words of an extra, which holds the fields that few items have. Every row has room for an
 * extra at a place of its own (`extraOf`). What is there means nothing unless the row has the bit
 * at MoreShift.HasExtra.
 */
export const Extra = {
  /** properties.$set, as in PropertyTypes. */
  PropertiesSetStart: 0,
  PropertiesSetEnd: 1,
  PropertiesSetOnceStart: 2,
  PropertiesSetOnceEnd: 3,
  PropertiesUnsetStart: 4,
  PropertiesUnsetEnd: 5,
  /** The item's `$unset`. */
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
  /** Eight TokenTypes, four bits each, see ExtraShift. */
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

/** Bit positions in Row.PropertyTypes, which is of reserved keys directly inside `properties`. */
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
  /** properties.$current_url */
  CurrentUrl: 0,
  /** properties.$screen_name */
  ScreenName: 4,
  /**
   * The item itself. If it is anything but Object, all spans and types of the row are zero but
   * those of the item.
   */
  Item: 8,
  /** properties.$ignore_sent_at */
  IgnoreSentAt: 12,
  /** One bit: at least one field of Extra is there. */
  HasExtra: 16,
  /** ItemFlag bits. */
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
 * Why an item is not plain. EscapedKey, DuplicateKey, EscapedInnerKey and ReplacedCharacter send it
 * the slow way, to be normalised; TooDeep and LongNumber make it an error. Bits at MoreShift.Flags.
 */
export const ItemFlag = {
  /** A key of the item or of its `properties` is written with an escape. */
  EscapedKey: 1,
  /**
   * A key that is written without escapes stands twice in one object: in `properties`, or further
   * in. Of the item's own keys each field of the table is the last, so those do not count.
   */
  DuplicateKey: 2,
  /**
   * A string anywhere in the item, key or value, holds \u0000 or an escaped surrogate without its
   * partner.
   */
  ReplacedCharacter: 4,
  /** Objects and arrays are nested more than `depthMax` deep, the item counted. */
  TooDeep: 8,
  /** A number has more than `numberDigitsMax` digits. */
  LongNumber: 16,
  /** A key of an object further in than `properties` is written with an escape. */
  EscapedInnerKey: 32,
} as const;

/**
 * Many readers of JSON have a limit: ClickHouse and simdjson stop at about 1,000 levels, others at
 * 128.
 */
export const depthMax = 100;
/**
 * Python reads no integer of more than 4,300 digits, and no double has more than 309 before its
 * point.
 */
export const numberDigitsMax = 400;

/** Places of either kind that a repair notes. Later ones are replaced all the same. */
export const repairPlacesMax = 1_048_576;

/**
 * Once a repaired text is this much longer than what was read, "?" replaces malformed UTF-8, so that
 * no text grows to three times its length.
 */
export const growthBytesMax = 2_097_152;

/** The state of the repair of a body. */
export interface Repair {
  /** The repaired text, of Header.RepairedBytes bytes. */
  readonly text: Buffer;
  /**
   * Where in the text malformed UTF-8 is replaced for the first time after each `{`, ascending:
   * Header.Malformed offsets. They tell which events have a replacement.
   */
  readonly malformed: Uint32Array;
  /** The same of `null` for a number: Header.NonFinite offsets. */
  readonly nonFinite: Uint32Array;
  /**
   * Five words: bytes read, bytes written, offsets in `malformed` and in `nonFinite`, and the state
   * of the scanner. Zeros at first.
   */
  readonly progress: Uint32Array;
}

/** What `normalise` returns where it wrote nothing of use. */
export const NotNormal = { NotJson: -1, OutOfMemory: -2 } as const;

/** The words of a table with room for `rows` rows. */
export function tableWords(rows: number): number {
  return Header.Words + rows * (Row.Words + Extra.Words);
}

/** Rows that a table has room for. */
export function tableRows(table: Uint32Array): number {
  return ((table.length - Header.Words) / (Row.Words + Extra.Words)) | 0;
}

/** Where the extra of the row at word `row` begins, whether or not the item has an extra. */
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

/** The most rows that one scan fills; `scanMore` brings the rest of a longer batch. */
export const rowsMax = 65_536;

/**
 * A scanner and the table it fills. One body at a time: the table is valid until the next `scan` or
 * `scanMore`, of either kind; `normalise` and `repair` leave it as it is. `scanMore` takes the body
 * of the last `scan`, unchanged since.
 *
 * A body that scans Ok is valid JSON in every byte (what JSON.parse accepts, no more and no less,
 * given valid UTF-8). Raw line breaks between its tokens have been overwritten with spaces, so that
 * any slice of it fits one NDJSON line. A body that does not scan Ok is unchanged.
 */
export interface Scanner {
  readonly table: Uint32Array;
  scan(body: Buffer): ScanStatus;
  /** As `scan` of body.subarray(start, end), without that view: offsets count from `start`. */
  scanPart(body: Buffer, start: number, end: number): ScanStatus;
  /** As `scan`, but does not look for a long body's fault, which takes longer than the scan. */
  scanAtOnce(body: Buffer): ScanStatus;
  /**
   * Fills the table with the next rows, and sets Header.FirstItem and Header.RowCount. RowCount is
   * 0 where no rows are left.
   */
  scanMore(body: Buffer): void;
  /**
   * Writes the plain form of the JSON value body[start, end) to the target from `at` on, where
   * there must be room for as many bytes as the value has; returns how many it wrote. In the plain
   * form each string is written in one way only, with U+FFFD for U+0000 and lone surrogates; of
   * members of one name only the last is kept; numbers are as they were; and there is no white
   * space. A negative result is one of NotNormal; NotJson also stands for a value deeper than
   * `depthMax`. The target must not be part of the body.
   */
  normalise(body: Buffer, start: number, end: number, target: Buffer, at: number): number;
  /**
   * Continues the repair of a body for which a scan has set Header.RepairedBytes, until `until`
   * bytes of it are read, or a few more. U+FFFD replaces each malformed sequence, as in the WHATWG's
   * decoder, and "?" after `growthBytesMax`; a surrogate pair written as two sequences (CESU-8)
   * becomes its character; `null` replaces `NaN`, `Infinity` and `-Infinity` outside of strings.
   */
  repair(body: Buffer, until: number, repair: Repair): void;
}

/**
 * A scanner that can also work in the thread pool, so that a large body does not hold up the event
 * loop. The results are those of `scan` and `scanMore`, overwritten line breaks included. Only one
 * call of either kind may run at a time: until a promise settles, every other call throws or
 * rejects.
 *
 * Until a promise settles, neither the body nor the table may be touched: not written, not read,
 * and above all not transferred, detached or resized. The scan runs on memory that Node-API cannot
 * hold in place. If that memory is taken away, the scan notices, and rejects, only afterwards.
 */
export interface BackgroundScanner extends Scanner {
  /** Rejects only for misuse: Error (busy) or TypeError (wrong arguments, memory taken away). */
  scanInBackground(body: Buffer): Promise<ScanStatus>;
  /** `scanMore` in the thread pool. Rejects only for misuse. */
  scanMoreInBackground(body: Buffer): Promise<void>;
  /** Ends the scan of a body whose rows are not all asked for: frees an index that is large. */
  finish(): void;
  /** Finishes, and frees what is kept for the next scan. Both throw only for misuse. */
  release(): void;
}
