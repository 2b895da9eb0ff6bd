// The layout of what the addon reads of stored lines, and the functions that do it. The C++ side
// (addon/stored_lines.h) states the same numbers; a test compares the two.

/** The words of a line. */
export const Line = {
  /** LineFlag bits, and the kind at LineShift.Kind. */
  Flags: 0,
  /** Where the 36 characters of the uuid begin. */
  UuidAt: 1,
  /** The text of the project id, without its quotes. */
  ProjectStart: 2,
  ProjectEnd: 3,
  /** The token of the distinct id. */
  IdStart: 4,
  IdEnd: 5,
  /** A hash over project and uuid, under the key that the caller gives. */
  UuidHigh: 6,
  UuidLow: 7,
  /** A hash over the distinct id, where it is plain. */
  IdHigh: 8,
  IdLow: 9,
  /** A double of two words: milliseconds since the epoch. */
  ReceivedAt: 10,
  /** As ReceivedAt, where the line has LineFlag.HasTime. */
  Time: 12,
  Words: 14,
} as const;

export const LineFlag = {
  /** The line is in every byte as the gateway writes it. Else no other word means anything. */
  Written: 1,
  /** The line's project is that of the written line before it, in the same call. */
  SameProject: 2,
  PersonProfile: 4,
  /** There is something in its person fields, those of its properties, or `$groups`. */
  HasWrites: 8,
  /** The distinct id is short ASCII without escapes, and does not begin with white space. */
  PlainId: 16,
  /** The timestamp has the stored form. */
  HasTime: 32,
  /** The name of the event has escapes: whether it is one of the next two is not known. */
  EscapedEvent: 64,
  /** The event is `$merge_dangerously`. */
  Merge: 128,
  /** The event is `$exception` or `$$heatmap`. */
  Automatic: 256,
} as const;

/** Bit positions in Line.Flags, above the flags. */
export const LineShift = { Kind: 12 } as const;

/** What the addon does with stored lines. Wrong arguments throw. */
export interface LineFunctions {
  /**
   * Makes the lines of text[start, end) items of an array: line feeds become commas. Writes where
   * each line ends, as far as `ends` has room, and returns how many lines there are.
   */
  readonly joinLines: (text: Buffer, start: number, end: number, ends: Uint32Array) => number;
  /**
   * Reads the lines of the rows in a scan's table. `place` has five words: how many lines there
   * are, the line of the first row, where that line begins, and the two words of the key for the
   * hashes of events. Writes Line.Words words for each
   * row that has a line, and returns how many these are.
   */
  readonly readLines: (
    text: Buffer,
    table: Uint32Array,
    ends: Uint32Array,
    place: Uint32Array,
    lines: Uint32Array,
  ) => number;
}
