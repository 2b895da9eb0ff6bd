// Lists of names as `$unset` has them, an array of strings or an object whose keys they are, to one
// array in which each stands once. On the way they are the keys of an object, of which the addon
// keeps one of each. The texts are valid JSON, as a scanner has accepted it.

import type { Buffer } from "node:buffer";

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;

const COLON = 0x3a;
const DIGIT_0 = 0x30;
/** Of the `:0` behind a name. */
const valueBytes = 2;

/**
 * Bytes that an object of names takes at most, of lists of so many bytes: `"",` becomes `"":0,`.
 */
export function nameObjectBytesMax(listBytes: number): number {
  return 2 * listBytes + 2;
}

/** `{"name":0,"other":0}`, written into memory that has room for it. */
export class NameObject {
  readonly #target: Buffer;
  #end = 1;
  /** Something in a list was no name. */
  leftOut = false;

  constructor(target: Buffer) {
    this.#target = target;
    target[0] = OPEN_BRACE;
  }

  /** The names in the array or object list[start, end). */
  append(list: Buffer, start: number, end: number): void {
    let depth = 0;
    let isNameNext = true;
    for (let at = start + 1; at < end - 1; at++) {
      const byte = list[at]!;
      if (byte <= SPACE) continue;
      if (byte === QUOTE) {
        const last = stringLast(list, at);
        if (isNameNext) this.#add(list, at, last + 1);
        at = last;
      } else if (byte === COMMA) {
        if (depth === 0) isNameNext = true;
        continue;
      } else {
        if (isNameNext) this.leftOut = true;
        if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
        else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
      }
      isNameNext = false;
    }
  }

  /** Closes the object; answers where it ends. */
  close(): number {
    this.#target[this.#end++] = CLOSE_BRACE;
    return this.#end;
  }

  #add(list: Buffer, start: number, end: number): void {
    if (this.#end > 1) this.#target[this.#end++] = COMMA;
    // Byte by byte: names are short, and a list may have 200,000 of them.
    for (let at = start; at < end; at++) this.#target[this.#end++] = list[at]!;
    this.#target[this.#end++] = COLON;
    this.#target[this.#end++] = DIGIT_0;
  }
}

/**
 * Makes the array of its names of the object of names, in plain form, that is object[start, end);
 * answers where it ends.
 */
export function namesToArray(object: Buffer, start: number, end: number): number {
  object[start] = OPEN_BRACKET;
  let at = start + 1;
  for (let read = at; read < end - 1; ) {
    const last = stringLast(object, read);
    while (read <= last) object[at++] = object[read++]!;
    read += valueBytes;
    if (object[read] === COMMA) object[at++] = object[read++]!;
  }
  object[at++] = CLOSE_BRACKET;
  return at;
}

/** The quote that ends the string that begins at `at`. */
function stringLast(text: Buffer, at: number): number {
  let last = at + 1;
  while (text[last] !== QUOTE) last += text[last] === BACKSLASH ? 2 : 1;
  return last;
}
