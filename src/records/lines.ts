// The layout of the results for stored lines. addon/stored_lines.h contains the same numbers. Both
// are compared when the addon is loaded.

import { Buffer } from "node:buffer";
import { Part } from "./fields.ts";
import { typeAt } from "./item-view.ts";
import { TokenType } from "./table.ts";

export const Line = {
  Flags: 0,
  /** The types of the parts. Each word contains eight types of four bits each. */
  Types: 1,
  /**
   * Each time is in milliseconds since 1970. It is a double, which takes two words. It is NaN if
   * the record has no such time.
   */
  ReceivedAt: 4,
  Timestamp: 6,
  TimestampSent: 8,
  SentAt: 10,
  /** A hash of the project, uuid, event and distinct id. It uses the key of the caller. */
  UuidHigh: 12,
  UuidLow: 13,
  IdHigh: 14,
  IdLow: 15,
  /** The start and end of each part, including its quotes or brackets. */
  Parts: 16,
  Words: 16 + 2 * Part.Count,
} as const;

export const LineFlag = {
  /**
   * This bit is set if the record is in the form that Penstock writes. If it is not set, no other
   * word has a meaning.
   */
  Written: 1,
  SameProject: 2,
  PersonProfile: 4,
  HasWrites: 8,
  /** This bit is set if the id is short ASCII without escapes and leading white space. */
  PlainId: 16,
  Historical: 32,
  /**
   * This bit is set if the name of the event has escapes. In that case, `Merge` and `Automatic` may
   * be missing.
   */
  EscapedEvent: 64,
  Merge: 128,
  Automatic: 256,
  SameOrigin: 512,
} as const;

export const LineShift = { Kind: 12 } as const;

export interface LineFunctions {
  /** Replaces line feeds by commas, writes the ends of lines, and returns the number of lines. */
  readonly joinLines: (text: Buffer, start: number, end: number, ends: Uint32Array) => number;
  /**
   * Returns the number of rows that have a line. `place` contains the number of lines, the index
   * and the offset of the first row's line, and the two words of the hash key.
   */
  readonly readLines: (
    text: Buffer,
    table: Uint32Array,
    ends: Uint32Array,
    place: Uint32Array,
    lines: Uint32Array,
  ) => number;
}

/** The record on one line of a frame. It is reused for all lines, so do not store it. */
export class RecordView {
  body: Buffer = Buffer.alloc(0);
  view: DataView = new DataView(new ArrayBuffer(0));
  line = 0;
  /** The span of the line in `body`, without its line feed. */
  start = 0;
  end = 0;
  /** The difference between the offset of a byte in the frame and its offset in `body`. */
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
