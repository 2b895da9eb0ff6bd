// Collects the lines of one request as the items of its batch, so that they can be scanned
// together.

import { Ascii } from "../../platform/base/ascii.ts";
import { bodyTail } from "./batch.ts";

export interface BlockLimits {
  /** Only a single line may exceed it. */
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

  constructor(buffer: Buffer, head: Buffer, limits: BlockLimits) {
    this.#head = head;
    this.#limits = limits;
    this.buffer = buffer;
    this.length = head.copy(buffer);
  }

  get count(): number {
    return this.starts.length;
  }

  /** Returns false if the line does not fit after the existing lines. */
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
   * Carriage returns between tokens become blanks, as in the scanner, so that the hash of a line is
   * the same with and without a scan.
   */
  close(): void {
    this.length += bodyTail.copy(this.buffer, this.length);
    const used = this.buffer.subarray(0, this.length);
    if (!used.includes(Ascii.CarriageReturn)) return;
    for (const [index, start] of this.starts.entries())
      blankReturns(used, start, this.ends[index]!);
  }
}

/** Carriage returns within strings stay; they are invalid JSON. */
function blankReturns(bytes: Buffer, start: number, end: number): void {
  let isInString = false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte === Ascii.Quote) isInString = !isInString;
    else if (byte === Ascii.Backslash && isInString) at++;
    else if (byte === Ascii.CarriageReturn && !isInString) bytes[at] = Ascii.Space;
  }
}

export function blockBytes(head: Buffer, { bytesMax }: BlockLimits, lineBytesMax: number): number {
  return head.length + Math.max(bytesMax, lineBytesMax) + bodyTail.length;
}
