// The record on one line of a frame, as its readers see it. Values are parsed on access.

import { Buffer } from "node:buffer";
import type { Part } from "./fields.ts";
import { typeAt } from "./item-view.ts";
import { Line, LineFlag, LineShift } from "./lines.ts";
import { TokenType } from "./table.ts";

/** One object for all lines of a reader: do not store it. */
export class RecordView {
  /** The bytes that the offsets refer to. */
  body: Buffer = Buffer.alloc(0);
  /** The same bytes. */
  view: DataView = new DataView(new ArrayBuffer(0));
  /** Index of the line in the frame. */
  line = 0;
  /** Offset of the line in the frame's data, without its line feed. */
  start = 0;
  end = 0;
  /** Added to an offset in `body`, it gives the offset of the same byte in the frame's data. */
  shift = 0;
  /** "": the record has no valid project id. */
  projectId = "";
  /** The type of `person_profile`. */
  profileType: TokenType = TokenType.True;
  /** The words of the lines, and the index at which those of this line begin. */
  readonly words: Uint32Array;
  readonly signed: Int32Array;
  readonly #doubles: Float64Array;
  at = 0;

  /** `lines`: number of lines whose words are stored at a time. */
  constructor(lines: number) {
    this.words = new Uint32Array(lines * Line.Words);
    this.signed = new Int32Array(this.words.buffer);
    this.#doubles = new Float64Array(this.words.buffer);
  }

  /** Whether every byte of the line is as the gateway writes it. */
  get isWritten(): boolean {
    return this.has(LineFlag.Written);
  }

  /** `flag`: of LineFlag. */
  has(flag: number): boolean {
    return (this.words[this.at]! & flag) !== 0;
  }

  /** Its index in `kinds`; the length of `kinds` for an unknown kind. */
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

  /** The text of a part that is a string. */
  text(part: Part): string {
    const { body } = this;
    const [start, end] = [this.startOf(part), this.endOf(part)];
    const text = body.toString("utf8", start + 1, end - 1);
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /** `word`: one of the times in Line. */
  ms(word: number): number {
    return this.#doubles[(this.at + word) >> 1]!;
  }

  setMs(word: number, ms: number): void {
    this.#doubles[(this.at + word) >> 1] = ms;
  }

  /** A signed word of a hash: `word` is one of the four in Line. */
  hashWord(word: number): number {
    return this.signed[this.at + word]!;
  }
}
