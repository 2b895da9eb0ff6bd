// Gathers the lines that one request is made of, already as the items of its batch: where every
// line is an event as it stands, this is the body, and no line is touched again.

import { Ascii } from "../../platform/base/ascii.ts";
import { bodyTail } from "./batch.ts";

export interface BlockLimits {
  /** Bytes of lines that a block holds; more only for one line alone. */
  readonly bytesMax: number;
  readonly linesMax: number;
}

export class LineBlock {
  readonly #head: Buffer;
  readonly #limits: BlockLimits;
  readonly buffer: Buffer;
  length: number;
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly numbers: number[] = [];

  /** `buffer` has room for `blockBytes`. */
  constructor(buffer: Buffer, head: Buffer, limits: BlockLimits) {
    this.#head = head;
    this.#limits = limits;
    this.buffer = buffer;
    this.length = head.copy(buffer);
  }

  get count(): number {
    return this.starts.length;
  }

  /** False where the line does not fit behind those that are there. */
  add(bytes: Buffer, start: number, end: number, number: number): boolean {
    const { bytesMax, linesMax } = this.#limits;
    const { count } = this;
    const isRoom = this.length - this.#head.length + end - start < bytesMax;
    if (count > 0 && (count >= linesMax || !isRoom)) return false;
    if (count > 0) this.buffer[this.length++] = Ascii.Comma;
    this.starts.push(this.length);
    this.length += bytes.copy(this.buffer, this.length, start, end);
    this.ends.push(this.length);
    this.numbers.push(number);
    return true;
  }

  /**
   * Closes the batch. Carriage returns between tokens become blanks, as the scanner would make
   * them: then the lines are hashed alike before a scan and without one.
   */
  close(): void {
    this.length += bodyTail.copy(this.buffer, this.length);
    const used = this.buffer.subarray(0, this.length);
    if (!used.includes(Ascii.CarriageReturn)) return;
    for (const [index, start] of this.starts.entries())
      blankReturns(used, start, this.ends[index]!);
  }
}

/** Those within strings stay, and are what no JSON has. */
function blankReturns(bytes: Buffer, start: number, end: number): void {
  let isInString = false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte === Ascii.Quote) isInString = !isInString;
    else if (byte === Ascii.Backslash && isInString) at++;
    else if (byte === Ascii.CarriageReturn && !isInString) bytes[at] = Ascii.Space;
  }
}

/** The most bytes that a block takes, with what stands around its lines. */
export function blockBytes(head: Buffer, { bytesMax }: BlockLimits, lineBytesMax: number): number {
  return head.length + Math.max(bytesMax, lineBytesMax) + bodyTail.length;
}
