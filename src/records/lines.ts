// The layout of what the addon reads of stored lines, and the functions that do it. The C++ side
// (addon/stored_lines.h) states the same numbers, and loading
// the addon compares them.

import { Part } from "./fields.ts";

/** The words of a line. */
export const Line = {
  /** LineFlag bits, and the kind at LineShift.Kind. */
  Flags: 0,
  /** The TokenType of each part: four bits each, eight parts a word. */
  Types: 1,
  /** A double of two words: milliseconds since the epoch; NaN where the record has no such time. */
  ReceivedAt: 4,
  Timestamp: 6,
  TimestampSent: 8,
  SentAt: 10,
  /** A hash over project, uuid, event and distinct id, under the key that the caller gives. */
  UuidHigh: 12,
  UuidLow: 13,
  /** A hash over the distinct id, where it is plain. */
  IdHigh: 14,
  IdLow: 15,
  /** The token of each part, quotes or brackets included: where it begins and where it ends. */
  Parts: 16,
  Words: 16 + 2 * Part.Count,
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
  Historical: 32,
  /** The name of the event has escapes: whether it is one of the next two is not known. */
  EscapedEvent: 64,
  /** The event is `$merge_dangerously`. */
  Merge: 128,
  /** The event is `$exception` or `$$heatmap`. */
  Automatic: 256,
  /**
   * All between timestamp and properties is that of a written line before it, in the same call: the
   * times except the event's own, `ip`, `kind`, `person_profile` and `historical`.
   */
  SameOrigin: 512,
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
   * hashes of events. Writes Line.Words words for each row that has a line, and returns how many
   * these are.
   */
  readonly readLines: (
    text: Buffer,
    table: Uint32Array,
    ends: Uint32Array,
    place: Uint32Array,
    lines: Uint32Array,
  ) => number;
}
