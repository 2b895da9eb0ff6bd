// Iterates over the members of a JSON object or the elements of an array, in one pass and without
// recursion. The text must have passed a scan.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import { depthMax, numberDigitsMax, TokenType } from "./table.ts";

export const ValueOddity = {
  NotPlain: 1,
  TooDeep: 2,
  Number: 4,
} as const;

/** PostgreSQL's `numeric` allows only 16,383 digits after the decimal point. */
const exponentMax = 10_000;

const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const LETTER_E = 0x65;
const toLower = 0x20;
const firstLetters: Readonly<Record<string, TokenType>> = {
  '"': TokenType.PlainString,
  "{": TokenType.Object,
  "[": TokenType.Array,
  n: TokenType.Null,
  t: TokenType.True,
  f: TokenType.False,
};
const typeOfFirst = new Uint8Array(256).fill(TokenType.Number);
for (const [letter, type] of Object.entries(firstLetters)) typeOfFirst[letter.charCodeAt(0)] = type;

/** Call `begin` for each text. Then call `next` until it returns false. */
export class JsonMembers {
  #body: Buffer;
  #at = 0;
  #end = 0;
  #hasNames = true;
  #oddities = 0;
  #hasEscape = false;
  /** The name of the member, without its quotes. In an array, the name is empty. */
  nameStart = 0;
  nameEnd = 0;
  nameHasEscape = false;
  valueStart = 0;
  valueEnd = 0;
  valueType: TokenType = TokenType.Absent;
  oddities = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  begin(body: Buffer, start: number, end: number): void {
    this.#body = body;
    this.#at = start + 1;
    this.#end = end - 1;
    this.#hasNames = body[start] === Ascii.OpenBrace;
  }

  next(): boolean {
    let at = this.#toToken(this.#at);
    if (at >= this.#end) return false;
    if (this.#body[at] === Ascii.Comma) at = this.#toToken(at + 1);
    if (this.#hasNames) {
      this.#hasEscape = false;
      const end = this.#string(at);
      this.nameStart = at + 1;
      this.nameEnd = end - 1;
      this.nameHasEscape = this.#hasEscape;
      at = this.#toToken(this.#toToken(end) + 1);
    }
    this.#value(at);
    return true;
  }

  #value(at: number): void {
    this.#oddities = 0;
    this.#hasEscape = false;
    const type = typeOfFirst[this.#body[at]!]! as TokenType;
    this.valueStart = at;
    if (type === TokenType.PlainString) {
      this.valueEnd = this.#string(at);
      this.valueType = this.#hasEscape
        ? TokenType.EscapedString
        : this.valueEnd - at === 2
          ? TokenType.EmptyString
          : TokenType.PlainString;
    } else {
      this.valueType = type;
      if (type === TokenType.Object || type === TokenType.Array)
        this.valueEnd = this.#container(at);
      else if (type === TokenType.Number) this.valueEnd = this.#number(at);
      else this.valueEnd = at + (type === TokenType.False ? 5 : 4);
    }
    this.oddities = this.#oddities;
    this.#at = this.valueEnd;
  }

  #toToken(at: number): number {
    let next = at;
    while (next < this.#end && this.#body[next]! <= Ascii.Space) next++;
    return next;
  }

  #string(at: number): number {
    const body = this.#body;
    const end = this.#end;
    let last = at + 1;
    for (; last < end; last++) {
      const byte = body[last];
      if (byte === Ascii.Quote) break;
      if (byte === Ascii.Backslash) {
        this.#hasEscape = true;
        this.#oddities |= ValueOddity.NotPlain;
        last++;
      }
    }
    return last + 1;
  }

  #container(start: number): number {
    const body = this.#body;
    const end = this.#end;
    let depth = 0;
    let at = start;
    while (at < end) {
      const byte = body[at]!;
      if (byte === Ascii.Quote) {
        at = this.#string(at);
        continue;
      }
      if (byte === Ascii.Minus || isDigit(byte)) {
        at = this.#number(at);
        continue;
      }
      at++;
      if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) {
        if (++depth > depthMax) this.#oddities |= ValueOddity.TooDeep;
      } else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) {
        if (--depth === 0) break;
      } else if (byte <= Ascii.Space) {
        this.#oddities |= ValueOddity.NotPlain;
      }
    }
    return at;
  }

  #number(start: number): number {
    const body = this.#body;
    const end = this.#end;
    let digits = 0;
    let at = start;
    for (; at < end; at++) {
      const byte = body[at]!;
      if (isDigit(byte)) digits++;
      else if ((byte | toLower) === LETTER_E) return this.#exponent(at + 1, digits);
      else if (byte !== Ascii.Dot && byte !== Ascii.Minus) break;
    }
    if (digits > numberDigitsMax) this.#oddities |= ValueOddity.Number;
    return at;
  }

  #exponent(start: number, digitsBefore: number): number {
    const body = this.#body;
    let digits = digitsBefore;
    let exponent = 0;
    let at = start;
    for (; at < this.#end; at++) {
      const byte = body[at]!;
      if (isDigit(byte)) {
        digits++;
        exponent = Math.min(exponent * 10 + byte - DIGIT_0, exponentMax + 1);
      } else if (byte !== Ascii.Plus && byte !== Ascii.Minus) {
        break;
      }
    }
    if (digits > numberDigitsMax || exponent > exponentMax) this.#oddities |= ValueOddity.Number;
    return at;
  }
}

export interface ListedMember {
  /** Without quotes and escapes. */
  readonly name: string;
  readonly type: TokenType;
  /** The bytes of the value. */
  readonly start: number;
  readonly end: number;
  /** The name, the colon and the value. */
  readonly text: string;
}

/** Returns all members of an object. Use JsonMembers where speed matters. */
export function listMembers(body: Buffer, start: number, end: number): ListedMember[] {
  const members = new JsonMembers(body);
  members.begin(body, start, end);
  const all: ListedMember[] = [];
  while (members.next()) {
    const { nameStart, nameEnd, valueType: type, valueStart, valueEnd } = members;
    const name = JSON.parse(body.toString("utf8", nameStart - 1, nameEnd + 1)) as string;
    const text = body.toString("utf8", nameStart - 1, valueEnd);
    all.push({ name, type, start: valueStart, end: valueEnd, text });
  }
  return all;
}

function isDigit(byte: number): boolean {
  return byte >= DIGIT_0 && byte <= DIGIT_9;
}
