// The record on one line of a frame, for its readers. Values are parsed on access.

import { Buffer } from "node:buffer";
import type { Part } from "./fields.ts";
import { typeAt } from "./item-view.ts";
import { Line, LineFlag, LineShift } from "./lines.ts";
import { TokenType } from "./table.ts";

/** A view that is reused for all lines of a reader. Do not store it. */
export class RecordView {
  /** Bytes that the offsets refer to. */
  body: Buffer = Buffer.alloc(0);
  /** View of the bytes of `body`. */
  view: DataView = new DataView(new ArrayBuffer(0));
  /** Index of the line in the frame. */
  line = 0;
  /** Start of the line in the frame's data. `end` excludes the line feed. */
  start = 0;
  end = 0;
  /** Difference between the offset of a byte in the frame's data and its offset in `body`. */
  shift = 0;
  /** Project of the record; "" if the record has no valid project id. */
  projectId = "";
  /** Type of `person_profile`. */
  profileType: TokenType = TokenType.True;
  /** Words of the lines. The words of this line begin at the index `at`. */
  readonly words: Uint32Array;
  readonly signed: Int32Array;
  readonly #doubles: Float64Array;
  at = 0;

  /** Creates a view with room for the words of `lines` lines. */
  constructor(lines: number) {
    this.words = new Uint32Array(lines * Line.Words);
    this.signed = new Int32Array(this.words.buffer);
    this.#doubles = new Float64Array(this.words.buffer);
  }

  /** Whether every byte of the line is as the gateway writes it. */
  get isWritten(): boolean {
    return this.has(LineFlag.Written);
  }

  /** Whether the line has the flag of LineFlag. */
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

  /** Returns the text of a part that is a string. */
  text(part: Part): string {
    const { body } = this;
    const [start, end] = [this.startOf(part), this.endOf(part)];
    const text = body.toString("utf8", start + 1, end - 1);
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /** Returns a time in ms. `word` is one of the times in Line. */
  ms(word: number): number {
    return this.#doubles[(this.at + word) >> 1]!;
  }

  setMs(word: number, ms: number): void {
    this.#doubles[(this.at + word) >> 1] = ms;
  }

  /** Returns a signed word of a hash. `word` is one of the four hash words in Line. */
  hashWord(word: number): number {
    return this.signed[this.at + word]!;
  }
}
