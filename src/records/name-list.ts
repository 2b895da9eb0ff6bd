// Turns lists of names as `$unset` has them (an array of strings, or an object whose keys are the
// names) into one array in which each name stands once. To that end the names first become the keys
// of one object, of which the addon keeps one of each. The texts are valid JSON, as a scanner has
// accepted them.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";

const DIGIT_0 = 0x30;
/** Bytes of the `:0` behind a name. */
const valueBytes = 2;

/**
 * The most bytes of an object of names that is made of lists of `listBytes` bytes together: `"",`
 * becomes `"":0,`.
 */
export function nameObjectBytesMax(listBytes: number): number {
  return 2 * listBytes + 2;
}

/** Writes `{"name":0,"other":0}` into memory that has room for it. */
export class NameObject {
  readonly #target: Buffer;
  #end = 1;
  /** Whether a list held something that is no name, which was left out. */
  leftOut = false;

  constructor(target: Buffer) {
    this.#target = target;
    target[0] = Ascii.OpenBrace;
  }

  /** Adds the names in the array or object list[start, end). */
  append(list: Buffer, start: number, end: number): void {
    let depth = 0;
    let isNameNext = true;
    for (let at = start + 1; at < end - 1; at++) {
      const byte = list[at]!;
      if (byte <= Ascii.Space) continue;
      if (byte === Ascii.Quote) {
        const last = stringLast(list, at);
        if (isNameNext) this.#add(list, at, last + 1);
        at = last;
      } else if (byte === Ascii.Comma) {
        if (depth === 0) isNameNext = true;
        continue;
      } else {
        if (isNameNext) this.leftOut = true;
        if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) depth++;
        else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) depth--;
      }
      isNameNext = false;
    }
  }

  /** Closes the object; returns where it ends. */
  close(): number {
    this.#target[this.#end++] = Ascii.CloseBrace;
    return this.#end;
  }

  #add(list: Buffer, start: number, end: number): void {
    if (this.#end > 1) this.#target[this.#end++] = Ascii.Comma;
    // Byte by byte: names are short, and a list may have 200,000 of them.
    for (let at = start; at < end; at++) this.#target[this.#end++] = list[at]!;
    this.#target[this.#end++] = Ascii.Colon;
    this.#target[this.#end++] = DIGIT_0;
  }
}

/**
 * Turns the object of names object[start, end), which must be in plain form, into the array of its
 * names, in the same place. Returns where the array ends.
 */
export function namesToArray(object: Buffer, start: number, end: number): number {
  object[start] = Ascii.OpenBracket;
  let at = start + 1;
  for (let read = at; read < end - 1; ) {
    const last = stringLast(object, read);
    while (read <= last) object[at++] = object[read++]!;
    read += valueBytes;
    if (object[read] === Ascii.Comma) object[at++] = object[read++]!;
  }
  object[at++] = Ascii.CloseBracket;
  return at;
}

/** Where the closing quote is of the string that begins at `at`. */
function stringLast(text: Buffer, at: number): number {
  let last = at + 1;
  while (text[last] !== Ascii.Quote) last += text[last] === Ascii.Backslash ? 2 : 1;
  return last;
}
