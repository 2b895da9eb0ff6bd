// Converts lists of names as in `$unset` (an array of strings, or an object with the names as keys)
// to one array with each name once: the names become the keys of one object, in which the addon
// removes duplicates. The texts must be valid, as scanned.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";

const DIGIT_0 = 0x30;
/** The `:0` after a name. */
const valueBytes = 2;

/**
 * Returns the maximum size of the object from lists of `listBytes` bytes: `"",` becomes `"":0,`.
 */
export function nameObjectBytesMax(listBytes: number): number {
  return 2 * listBytes + 2;
}

/** Writes an object such as `{"name":0,"other":0}` to a buffer with enough room. */
export class NameObject {
  readonly #target: Buffer;
  #end = 1;
  /** Whether a list had a value that is not a name. Such a value is skipped. */
  hasInvalid = false;

  constructor(target: Buffer) {
    this.#target = target;
    target[0] = Ascii.OpenBrace;
  }

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
        if (isNameNext) this.hasInvalid = true;
        if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) depth++;
        else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) depth--;
      }
      isNameNext = false;
    }
  }

  /** Closes the object and returns its end. */
  close(): number {
    this.#target[this.#end++] = Ascii.CloseBrace;
    return this.#end;
  }

  #add(list: Buffer, start: number, end: number): void {
    if (this.#end > 1) this.#target[this.#end++] = Ascii.Comma;
    // Copied byte by byte, because names are short, and a list may have 200,000 of them.
    for (let at = start; at < end; at++) this.#target[this.#end++] = list[at]!;
    this.#target[this.#end++] = Ascii.Colon;
    this.#target[this.#end++] = DIGIT_0;
  }
}

/**
 * Converts an object of names in plain form to the array of its names, in place. Returns its end.
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

function stringLast(text: Buffer, at: number): number {
  let last = at + 1;
  while (text[last] !== Ascii.Quote) last += text[last] === Ascii.Backslash ? 2 : 1;
  return last;
}
