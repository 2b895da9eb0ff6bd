// The layout of the results for stored lines. addon/stored_lines.h has the same numbers, which are
// compared when the addon is loaded.

import { Buffer } from "node:buffer";
import { Part } from "./fields.ts";
import { typeAt } from "./item-view.ts";
import { TokenType } from "./table.ts";

export const Line = {
  Flags: 0,
  /** Four bits per part, eight parts per word. */
  Types: 1,
  /** A time in milliseconds since 1970, as a double of two words; NaN if absent. */
  ReceivedAt: 4,
  Timestamp: 6,
  TimestampSent: 8,
  SentAt: 10,
  /** Hash over project, uuid, event and distinct id, with the caller's key. */
  UuidHigh: 12,
  UuidLow: 13,
  IdHigh: 14,
  IdLow: 15,
  /** Quotes or brackets included. */
  Parts: 16,
  Words: 16 + 2 * Part.Count,
} as const;

export const LineFlag = {
  /** If this bit is not set, no other word has a meaning. */
  Written: 1,
  SameProject: 2,
  PersonProfile: 4,
  HasWrites: 8,
  /** Short ASCII without escapes that does not begin with white space. */
  PlainId: 16,
  Historical: 32,
  /** The event's name has escapes. It is unknown whether `Merge` or `Automatic` applies. */
  EscapedEvent: 64,
  Merge: 128,
  Automatic: 256,
  SameOrigin: 512,
} as const;

export const LineShift = { Kind: 12 } as const;

export interface LineFunctions {
  /** Replaces line feeds with commas, and writes the ends of lines. Returns the number of lines. */
  readonly joinLines: (text: Buffer, start: number, end: number, ends: Uint32Array) => number;
  /**
   * Returns the number of rows that have a line. `place` has the number of lines, the index and the
   * offset of the first row's line, and the two words of the hash key.
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
  /** `end` excludes the line feed. */
  start = 0;
  end = 0;
  /** A byte's offset in the frame's data minus its offset in `body`. */
  shift = 0;
  projectId = "";
  profileType: TokenType = TokenType.True;
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
