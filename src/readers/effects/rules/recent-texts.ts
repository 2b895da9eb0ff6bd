import type { Buffer } from "node:buffer";

const cachedBytesMax = 48;

export class RecentTexts {
  readonly #texts: string[];

  /** `count` is a power of two. */
  constructor(count: number) {
    this.#texts = new Array<string>(count).fill("");
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
    const place = (hash ^ (hash >>> 15)) & (this.#texts.length - 1);
    const cached = this.#texts[place]!;
    if (isText(cached, body, start, length)) return cached;
    const text = body.toString("latin1", start, end);
    this.#texts[place] = text;
    return text;
  }
}

/** Compares the text with the Latin 1 bytes from `start`. */
export function isText(text: string, body: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let index = 0; index < length; index++)
    if (text.charCodeAt(index) !== body[start + index]) return false;
  return true;
}
