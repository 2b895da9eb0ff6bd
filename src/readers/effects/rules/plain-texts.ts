// Creates strings without U+0000 and without lone surrogates, because databases reject them.
// Numbers keep their digits.

import { Buffer } from "node:buffer";
import { NotNormal, type Scanner } from "../../../records/table.ts";

const bufferBytes = 65_536;
const cachedTexts = 4_096;
const cachedBytesMax = 48;

export class PlainTexts {
  readonly #normalise: Scanner["normalise"];
  readonly #buffer = Buffer.alloc(bufferBytes);
  readonly #cached = new Array<string>(cachedTexts).fill("");

  constructor(normalise: Scanner["normalise"]) {
    this.#normalise = normalise;
  }

  /**
   * Returns the text of a value. Returns undefined if the value is nested too deeply. Throws an
   * Error if the scanner is out of memory.
   */
  valueOf(body: Buffer, start: number, end: number): string | undefined {
    const room = end - start;
    const target = room <= bufferBytes ? this.#buffer : Buffer.allocUnsafe(room);
    const length = this.#normalise(body, start, end, target, 0);
    if (length === NotNormal.NotJson) return undefined;
    if (length < 0)
      throw new Error(`cannot write the plain form of a value: the scanner returned ${length}`);
    return target.toString("utf8", 0, length);
  }

  nameOf(body: Buffer, start: number, end: number): string {
    const text = this.textOf(body, start, end);
    if (!text.includes("\\")) return text;
    return (JSON.parse(`"${text}"`) as string).replaceAll("\0", "\ufffd").toWellFormed();
  }

  textOf(body: Buffer, start: number, end: number): string {
    const length = end - start;
    if (length > cachedBytesMax) return body.toString("utf8", start, end);
    let hash = length;
    let bits = 0;
    for (let at = start; at < end; at++) {
      const byte = body[at]!;
      bits |= byte;
      hash = Math.imul(hash ^ byte, 0x01000193);
    }
    if (bits > 0x7f) return body.toString("utf8", start, end);
    const slot = (hash ^ (hash >>> 15)) & (cachedTexts - 1);
    const cached = this.#cached[slot]!;
    if (isText(cached, body, start, length)) return cached;
    const text = body.toString("latin1", start, end);
    this.#cached[slot] = text;
    return text;
  }
}

export function isText(text: string, body: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let index = 0; index < length; index++)
    if (text.charCodeAt(index) !== body[start + index]) return false;
  return true;
}

const plainName = /^[\w $.:/-]*$/;

/**
 * Returns the name as a JSON string. JSON.stringify is slow, so it is used only for names that need
 * escapes.
 */
export function nameToken(name: string): string {
  return plainName.test(name) ? `"${name}"` : JSON.stringify(name);
}

export function nameBytes(name: string): number {
  return plainName.test(name) ? name.length : Buffer.byteLength(JSON.stringify(name)) - 2;
}
