// Reads a JSON text byte by byte, but parses each value separately. So a malformed value does not
// affect other values.

import { Buffer, isUtf8 } from "node:buffer";
import { Ascii, isJsonSpace, stringEnd } from "../../../platform/base/ascii.ts";
import { exactlyParsed, MalformedOtlpError, RejectedSpanError, spanBytesMax } from "./otlp.ts";

/** The caller must read each value with exactly one call of a method. */
export class JsonCursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /**
   * Yields the names of an object's members in lowerCamelCase. The caller must read each value
   * before it requests the next name.
   */
  *members(): Generator<string, void> {
    this.#take(Ascii.OpenBrace, "an object");
    if (this.#takeIf(Ascii.CloseBrace)) return;
    do {
      const name = this.value();
      if (typeof name !== "string") throw this.#malformed("a name is expected");
      this.#take(Ascii.Colon, "a colon");
      yield camelCased(name);
    } while (this.#takeIf(Ascii.Comma));
    this.#take(Ascii.CloseBrace, "a comma or the end of an object");
  }

  /** Yields once per item. The caller must read each item before it requests the next one. */
  *items(): Generator<undefined, void> {
    this.#take(Ascii.OpenBracket, "an array");
    if (this.#takeIf(Ascii.CloseBracket)) return;
    do yield;
    while (this.#takeIf(Ascii.Comma));
    this.#take(Ascii.CloseBracket, "a comma or the end of an array");
  }

  isAt(byte: number): boolean {
    return this.#peek() === byte;
  }

  /**
   * Parses the next value. Throws a RejectedSpanError if it is too large, and a MalformedOtlpError
   * if it is not JSON.
   */
  value(): unknown {
    const text = this.text();
    if (text.length > spanBytesMax)
      throw new RejectedSpanError(`it has more than ${spanBytesMax} bytes`);
    try {
      return parsedRepaired(textIn(text), exactlyParsed);
    } catch (error) {
      if (error instanceof RangeError)
        throw new RejectedSpanError("its values are nested too deeply");
      throw this.#malformed((error as Error).message);
    }
  }

  /** Returns the text of the next value. Only the parser detects mismatched brackets. */
  text(): Buffer {
    const first = this.#peek();
    const bytes = this.#bytes;
    const start = this.#at;
    let at = start;
    if (first === Ascii.Quote || first === Ascii.OpenBrace || first === Ascii.OpenBracket) {
      let depth = 0;
      do {
        const byte = bytes[at];
        if (byte === Ascii.Quote) at = stringEnd(bytes, at + 1);
        else if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) depth++;
        else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) depth--;
        if (at++ >= bytes.length) throw this.#malformed("the text ends within a value");
      } while (depth > 0);
    } else while (scalarBytes[bytes[at] ?? 0xff] === true) at++;
    if (at === start) throw this.#malformed("a value is expected");
    this.#at = at;
    return bytes.subarray(start, at);
  }

  end(): void {
    if (this.#peek() !== undefined) throw this.#malformed("the text continues after the request");
  }

  #peek(): number | undefined {
    while (isJsonSpace(this.#bytes[this.#at])) this.#at++;
    return this.#bytes[this.#at];
  }

  #takeIf(byte: number): boolean {
    if (this.#peek() !== byte) return false;
    this.#at++;
    return true;
  }

  #take(byte: number, what: string): void {
    if (!this.#takeIf(byte)) throw this.#malformed(`${what} is expected`);
  }

  #malformed(what: string): MalformedOtlpError {
    return new MalformedOtlpError(`${what}, at byte ${this.#at}`);
  }
}

const scalarBytes = Array.from({ length: 0x80 }, (_, byte) =>
  /[\w+.-]/.test(String.fromCharCode(byte)),
);

export function camelCased(name: string): string {
  if (!name.includes("_")) return name;
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const surrogatePairs = /\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]/g;

/**
 * Decodes UTF-8. If each half of a surrogate pair is encoded separately, the pair becomes the
 * character that it represents.
 */
export function textIn(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  const joined = bytes.toString("latin1").replace(surrogatePairs, (pair) => {
    const unit = (at: number) =>
      0xd000 | ((pair.charCodeAt(at + 1) & 0x3f) << 6) | (pair.charCodeAt(at + 2) & 0x3f);
    return Buffer.from(String.fromCharCode(unit(0), unit(3))).toString("latin1");
  });
  return Buffer.from(joined, "latin1").toString();
}

/**
 * Parses a text. If it is not JSON, replaces NaN and Infinity by `null`, as the intake does, and
 * parses it again.
 */
export function parsedRepaired(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch (error) {
    const repaired = withoutNonFinite(text);
    if (repaired === text) throw error;
    return parse(repaired);
  }
}

function withoutNonFinite(text: string): string {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : quote;
    pieces.push(text.slice(at, end).replaceAll(/NaN|-?Infinity/g, "null"));
    at = quote < 0 ? end : afterString(text, quote);
    pieces.push(text.slice(end, at));
  }
  return pieces.join("");
}

function afterString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}
