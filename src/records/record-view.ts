import { Buffer } from "node:buffer";
import type { Part } from "./fields.ts";
import { typeAt } from "./item-view.ts";
import { Line, LineFlag, LineShift } from "./lines.ts";
import { TokenType } from "./table.ts";

/** The record on one line of a frame. Reused for all lines of a reader: do not store it. */
export class RecordView {
  body: Buffer = Buffer.alloc(0);
  /** Of the bytes of `body`. */
  view: DataView = new DataView(new ArrayBuffer(0));
  /** Index of the line in the frame. */
  line = 0;
  /** Of the line in the frame's data. `end` excludes the line feed. */
  start = 0;
  end = 0;
  /** The offset of a byte in the frame's data minus its offset in `body`. */
  shift = 0;
  /** "" if the record has no valid project id. */
  projectId = "";
  profileType: TokenType = TokenType.True;
  /** The words of this line begin at the index `at`. */
  readonly words: Uint32Array;
  readonly signed: Int32Array;
  readonly #doubles: Float64Array;
  at = 0;

  /** Has room for the words of `lines` lines. */
  constructor(lines: number) {
    this.words = new Uint32Array(lines * Line.Words);
    this.signed = new Int32Array(this.words.buffer);
    this.#doubles = new Float64Array(this.words.buffer);
  }

  /** Whether every byte of the line is as the gateway writes it. */
  get isWritten(): boolean {
    return this.has(LineFlag.Written);
  }

  /** `flag` is a LineFlag. */
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

  /** The part must be a string. */
  text(part: Part): string {
    const { body } = this;
    const [start, end] = [this.startOf(part), this.endOf(part)];
    const text = body.toString("utf8", start + 1, end - 1);
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /** `word` is one of the times in Line. */
  ms(word: number): number {
    return this.#doubles[(this.at + word) >> 1]!;
  }

  setMs(word: number, ms: number): void {
    this.#doubles[(this.at + word) >> 1] = ms;
  }

  /** `word` is one of the four hash words in Line. */
  hashWord(word: number): number {
    return this.signed[this.at + word]!;
  }
}
