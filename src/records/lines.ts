// The layout of the results for stored lines. The C++ side (addon/stored_lines.h) has the same
// numbers. Loading the addon compares both.

import { Buffer } from "node:buffer";
import { Part } from "./fields.ts";
import { typeAt } from "./item-view.ts";
import { TokenType } from "./table.ts";

export const Line = {
  /** The LineFlag bits, and the kind at LineShift.Kind. */
  Flags: 0,
  /** The TokenType of each part: four bits each, eight parts per word. */
  Types: 1,
  /** Milliseconds since 1970, as a double of two words; NaN if absent. The next three are alike. */
  ReceivedAt: 4,
  Timestamp: 6,
  TimestampSent: 8,
  SentAt: 10,
  /** Hash over project, uuid, event and distinct id, with the caller's key. */
  UuidHigh: 12,
  UuidLow: 13,
  /** Hash over the distinct id, if the id is plain. */
  IdHigh: 14,
  IdLow: 15,
  /** Start and end of each part's token, quotes or brackets included. */
  Parts: 16,
  Words: 16 + 2 * Part.Count,
} as const;

export const LineFlag = {
  /** The whole line is as the gateway writes it. If not, no other word has a meaning. */
  Written: 1,
  SameProject: 2,
  PersonProfile: 4,
  /** The person fields or `$groups` of the line are not empty. */
  HasWrites: 8,
  /** The distinct id is short ASCII without escapes, and does not begin with white space. */
  PlainId: 16,
  Historical: 32,
  /** The event's name has escapes. It is unknown whether `Merge` or `Automatic` applies. */
  EscapedEvent: 64,
  Merge: 128,
  Automatic: 256,
  /** The bytes between timestamp and properties are the same as in an earlier line of the call. */
  SameOrigin: 512,
} as const;

/** The kind is above the flags in Line.Flags. */
export const LineShift = { Kind: 12 } as const;

/** The addon's functions for lines. They throw for wrong arguments. */
export interface LineFunctions {
  /** Replaces line feeds with commas, and writes the ends of lines. Returns the number of lines. */
  readonly joinLines: (text: Buffer, start: number, end: number, ends: Uint32Array) => number;
  /**
   * Writes Line.Words words for each row of a scan's table that has a line. Returns the number of
   * such rows. `place` has the number of lines, the index and the offset of the first row's line,
   * and the two words of the key for hashes.
   */
  readonly readLines: (
    text: Buffer,
    table: Uint32Array,
    ends: Uint32Array,
    place: Uint32Array,
    lines: Uint32Array,
  ) => number;
}

/** The record on one line of a frame. Reused for all lines, so do not store it. */
export class RecordView {
  body: Buffer = Buffer.alloc(0);
  view: DataView = new DataView(new ArrayBuffer(0));
  line = 0;
  /** Start of the line in the frame's data. `end` excludes the line feed. */
  start = 0;
  end = 0;
  /** A byte's offset in the frame's data minus its offset in `body`. */
  shift = 0;
  /** The id of the project; "" if the record has no valid project id. */
  projectId = "";
  profileType: TokenType = TokenType.True;
  /** The words of all lines. The words of this line begin at `at`. */
  readonly words: Uint32Array;
  readonly signed: Int32Array;
  readonly #doubles: Float64Array;
  at = 0;

  constructor(lines: number) {
    this.words = new Uint32Array(lines * Line.Words);
    this.signed = new Int32Array(this.words.buffer);
    this.#doubles = new Float64Array(this.words.buffer);
  }

  get isWritten(): boolean {
    return this.has(LineFlag.Written);
  }

  has(flag: number): boolean {
    return (this.words[this.at]! & flag) !== 0;
  }

  /** Index of the kind in `kinds`; the length of `kinds` for an unknown kind. */
  get kind(): number {
    return this.words[this.at]! >>> LineShift.Kind;
  }

  type(part: Part): TokenType {
    return typeAt(this.words[this.at + Line.Types + (part >> 3)]!, 4 * (part & 7));
  }

  startOf(part: Part): number {
    return this.words[this.at + Line.Parts + 2 * part]!;
  }

  endOf(part: Part): number {
    return this.words[this.at + Line.Parts + 2 * part + 1]!;
  }

  text(part: Part): string {
    const { body } = this;
    const [start, end] = [this.startOf(part), this.endOf(part)];
    const text = body.toString("utf8", start + 1, end - 1);
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  ms(word: number): number {
    return this.#doubles[(this.at + word) >> 1]!;
  }

  setMs(word: number, ms: number): void {
    this.#doubles[(this.at + word) >> 1] = ms;
  }

  hashWord(word: number): number {
    return this.signed[this.at + word]!;
  }
}
