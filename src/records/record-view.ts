// The record on one line of a frame, as its readers see it. Values are read when they are asked for.

import { Buffer } from "node:buffer";
import type { Part } from "./fields.ts";
import { typeAt } from "./item-view.ts";
import { Line, LineFlag, LineShift } from "./lines.ts";
import { TokenType } from "./table.ts";

/** One object for all lines of a reader: nothing may keep it. */
export class RecordView {
  /** The bytes that the parts are places in. */
  body: Buffer = Buffer.alloc(0);
  /** The same bytes. */
  view: DataView = new DataView(new ArrayBuffer(0));
  /** Index of the line in the frame. */
  line = 0;
  /** Where the line is in the frame's data, without its line feed. */
  start = 0;
  end = 0;
  /** Added to a place in `body`, it is the place of the same byte in the frame's data. */
  shift = 0;
  /** "": the record names no project that there can be. */
  projectId = "";
  /** The type of `person_profile`. */
  profileType: TokenType = TokenType.True;
  /** The words of the lines, and where those of this one begin. */
  readonly words: Uint32Array;
  readonly signed: Int32Array;
  readonly #doubles: Float64Array;
  at = 0;

  /** `lines`: how many have their words at a time. */
  constructor(lines: number) {
    this.words = new Uint32Array(lines * Line.Words);
    this.signed = new Int32Array(this.words.buffer);
    this.#doubles = new Float64Array(this.words.buffer);
  }

  /** Whether the line is in every byte as the gateway writes it. */
  get isWritten(): boolean {
    return this.has(LineFlag.Written);
  }

  /** `flag`: of LineFlag. */
  has(flag: number): boolean {
    return (this.words[this.at]! & flag) !== 0;
  }

  /** Its index in `kinds`; as many as these are where its kind is none of them. */
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
