// Lists of names as `$unset` has them, an array of strings or an object whose keys they are, to one
// array in which each stands once. On the way they are the keys of an object, of which the addon
// keeps one of each. The texts are valid JSON, as a scanner has accepted it.

import type { Buffer } from "node:buffer";
import { Ascii } from "../base/ascii.ts";

const DIGIT_0 = 0x30;
/** The `:0` behind a name. */
const valueBytes = 2;

/**
 * The most bytes that an object of names takes whose lists have so many bytes: `"",` becomes
 * `"":0,`.
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
    target[0] = Ascii.OpenBrace;
  }

  /** The names in the array or object list[start, end). */
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

  /** Closes the object; answers where it ends. */
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
 * Turns the object of names, which is object[start, end) in plain form, into the array of its
 * names. Answers where that ends.
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

/** The quote that ends the string that begins at `at`. */
function stringLast(text: Buffer, at: number): number {
  let last = at + 1;
  while (text[last] !== Ascii.Quote) last += text[last] === Ascii.Backslash ? 2 : 1;
  return last;
}
