import { Ascii } from "../../platform/base/ascii.ts";
import { bodyTail } from "./batch.ts";

const growthFactor = 1.5;

export class ItemWriter {
  #buffer: Buffer;
  length: number;
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly lines: number[] = [];

  constructor(buffer: Buffer, head: Buffer) {
    this.#buffer = buffer;
    this.length = head.copy(buffer);
  }

  get buffer(): Buffer {
    return this.#buffer;
  }

  copy(bytes: Buffer, start: number, end: number, line: number): void {
    this.#begin(end - start, line);
    this.length += bytes.copy(this.#buffer, this.length, start, end);
    this.ends.push(this.length);
  }

  /**
   * Writes a non-empty object, with a uuid as its last member: of repeated members, the last one
   * counts.
   */
  copyWithUuid(
    bytes: Buffer,
    [start, end]: readonly [number, number],
    uuid: string,
    line: number,
  ): void {
    const member = `,"uuid":"${uuid}"}`;
    this.#begin(end - start + member.length, line);
    this.length += bytes.copy(this.#buffer, this.length, start, end - 1);
    this.length += this.#buffer.write(member, this.length, "latin1");
    this.ends.push(this.length);
  }

  writeText(text: string, line: number): void {
    this.#begin(Buffer.byteLength(text), line);
    this.length += this.#buffer.write(text, this.length, "utf8");
    this.ends.push(this.length);
  }

  close(): void {
    this.length += bodyTail.copy(this.#buffer, this.length);
  }

  /** Reserves space for the item, the separator before it and the end of the body. */
  #begin(bytes: number, line: number): void {
    const needed = this.length + 1 + bytes + bodyTail.length;
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafeSlow(Math.ceil(needed * growthFactor));
      this.#buffer.copy(grown, 0, 0, this.length);
      this.#buffer = grown;
    }
    if (this.starts.length > 0) this.#buffer[this.length++] = Ascii.Comma;
    this.starts.push(this.length);
    this.lines.push(line);
  }
}
