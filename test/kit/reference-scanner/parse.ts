// The parser of the reference scanner. It reads strict JSON byte by byte and creates a shallow tree
// of spans. The code must be simple enough to be verified by reading it.

import { isUtf8 } from "node:buffer";
import { Ascii } from "../../../src/platform/base/ascii.ts";
import { depthMax, numberDigitsMax, TokenType } from "../../../src/records/table.ts";

/** A value in the text. Its bytes are [start, end). */
export interface JsonNode {
  type: TokenType;
  readonly start: number;
  end: number;
  readonly children: JsonChild[];
}

export interface JsonChild {
  readonly key: string;
  readonly node: JsonNode;
}

export interface JsonTree {
  readonly root: JsonNode;
  /** The offsets of escapes that are replaced, in ascending order: U+0000 and lone surrogates. */
  readonly replaced: readonly number[];
  readonly longNumbers: readonly number[];
  readonly doubledKeys: readonly number[];
  readonly escapedKeys: readonly number[];
  /** The objects and arrays that are too deep even if the item is the root, in ascending order. */
  readonly deep: readonly { readonly offset: number; readonly depth: number }[];
}

const keptLevels = 4;

const whiteSpace = new Set([..." \t\n\r"].map((character) => character.charCodeAt(0)));
const simpleEscapes = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));

export function findUtf8Fault(body: Buffer): number | undefined {
  if (isUtf8(body)) return undefined;
  let at = 0;
  while (at < body.length) {
    const lead = body[at]!;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (!isUtf8(body.subarray(at, at + length))) return at;
    at += length;
  }
  throw new Error("Looking for malformed UTF-8: isUtf8 contradicts itself");
}

/**
 * Parses a text, which must be valid UTF-8. If it is not valid JSON, returns the offset of the
 * first byte that is not allowed at its position.
 */
export function parseTree(body: Buffer): JsonTree | number {
  return new TreeReader(body).read();
}

/**
 * Reads one text. The methods with the prefix `#take` return false or undefined if the byte at
 * `#at` is invalid.
 */
class TreeReader {
  readonly #body: Buffer;
  #at = 0;
  readonly #replaced: number[] = [];
  readonly #longNumbers: number[] = [];
  readonly #deep: { offset: number; depth: number }[] = [];
  readonly #doubledKeys: number[] = [];
  readonly #escapedKeys: number[] = [];
  readonly #keys: Set<string>[] = [];
  readonly #top: JsonNode = { type: TokenType.Array, start: 0, end: 0, children: [] };
  readonly #open: JsonNode[] = [this.#top];
  #key = "";

  constructor(body: Buffer) {
    this.#body = body;
  }

  read(): JsonTree | number {
    for (;;) {
      const node = this.#addNode();
      const isOpened = this.#takeOpening(node);
      if (isOpened === undefined) return this.#at;
      if (isOpened) continue;
      node.end = this.#at;
      const isEnd = this.#takeClosings();
      if (isEnd === undefined) return this.#at;
      if (isEnd) break;
    }
    if (this.#at < this.#body.length) return this.#at;
    return {
      root: this.#top.children[0]!.node,
      replaced: this.#replaced,
      longNumbers: this.#longNumbers,
      deep: this.#deep,
      doubledKeys: this.#doubledKeys,
      escapedKeys: this.#escapedKeys,
    };
  }

  #addNode(): JsonNode {
    this.#skipWhiteSpace();
    const at = this.#at;
    const node: JsonNode = { type: TokenType.Absent, start: at, end: at, children: [] };
    if (this.#open.length <= keptLevels + 1)
      this.#open.at(-1)!.children.push({ key: this.#key, node });
    this.#key = "";
    return node;
  }

  /**
   * Reads a value. For a scalar, an empty object or an empty array, it reads the whole value and
   * returns false. For other objects and arrays, it reads the text before the first inner value and
   * returns true.
   */
  #takeOpening(node: JsonNode): boolean | undefined {
    if (!this.#take("{") && !this.#take("[")) {
      const type = this.#takeScalar();
      if (type === undefined) return undefined;
      node.type = type;
      return false;
    }
    const isObject = this.#body[node.start] === Ascii.OpenBrace;
    node.type = isObject ? TokenType.Object : TokenType.Array;
    const depth = this.#open.length;
    if (depth > depthMax) this.#deep.push({ offset: node.start, depth });
    this.#skipWhiteSpace();
    if (this.#take(isObject ? "}" : "]")) return false;
    this.#open.push(node);
    if (isObject) this.#keys.push(new Set());
    return !isObject || this.#takeKey() ? true : undefined;
  }

  /**
   * Reads the text after a value: the ends of objects and arrays, and the text before the next
   * value. Returns true if there is no next value, and undefined if the text is invalid.
   */
  #takeClosings(): boolean | undefined {
    for (;;) {
      this.#skipWhiteSpace();
      const container = this.#open.at(-1)!;
      if (container === this.#top) return true;
      const isObject = container.type === TokenType.Object;
      if (this.#take(",")) return !isObject || this.#takeKey() ? false : undefined;
      if (!this.#take(isObject ? "}" : "]")) return undefined;
      container.end = this.#at;
      this.#open.pop();
      if (isObject) this.#keys.pop();
    }
  }

  #skipWhiteSpace(): void {
    while (this.#at < this.#body.length && whiteSpace.has(this.#body[this.#at]!)) this.#at += 1;
  }

  #take(character: string): boolean {
    if (this.#body[this.#at] !== character.charCodeAt(0)) return false;
    this.#at += 1;
    return true;
  }

  #takeWord(word: string): boolean {
    return [...word].every((character) => this.#take(character));
  }

  #takeDigits(): boolean {
    const start = this.#at;
    while (this.#at < this.#body.length && isDigit(this.#body[this.#at]!)) this.#at += 1;
    return this.#at > start;
  }

  #takeNumber(): boolean {
    this.#take("-");
    if (!this.#take("0") && !this.#takeDigits()) return false;
    if (this.#take(".") && !this.#takeDigits()) return false;
    if (this.#take("e") || this.#take("E")) {
      if (!this.#take("+")) this.#take("-");
      return this.#takeDigits();
    }
    return true;
  }

  #takeFourHexDigits(): number | undefined {
    const start = this.#at;
    for (; this.#at < start + 4; this.#at += 1) {
      if (this.#at >= this.#body.length) return undefined;
      if (!/[0-9a-fA-F]/.test(String.fromCharCode(this.#body[this.#at]!))) return undefined;
    }
    return Number.parseInt(this.#body.toString("latin1", start, this.#at), 16);
  }

  #takeString(): boolean {
    // Offset of an escaped high surrogate that ends at `#at`. A low surrogate may follow.
    let high: number | undefined;
    if (!this.#take('"')) return false;
    while (this.#at < this.#body.length) {
      if (this.#body[this.#at]! < 0x20) return false;
      const start = this.#at;
      const unit = this.#takeUnit();
      if (unit === undefined) return false;
      const isLow = unit >= 0xdc00 && unit <= 0xdfff;
      if (high !== undefined && !isLow) this.#replaced.push(high);
      if ((high === undefined && isLow) || unit === 0) this.#replaced.push(start);
      high = unit >= 0xd800 && unit <= 0xdbff ? start : undefined;
      if (unit === -1 && this.#body[start] === Ascii.Quote) return true;
    }
    return false;
  }

  /**
   * Returns the code unit of a \u escape. Returns -1 for other input, and undefined for an invalid
   * escape.
   */
  #takeUnit(): number | undefined {
    if (!this.#take("\\")) {
      this.#at += 1;
      return -1;
    }
    if (this.#take("u")) return this.#takeFourHexDigits();
    if (this.#at >= this.#body.length || !simpleEscapes.has(this.#body[this.#at]!))
      return undefined;
    this.#at += 1;
    return -1;
  }

  #takeScalar(): TokenType | undefined {
    const start = this.#at;
    switch (String.fromCharCode(this.#body[start] ?? 0)) {
      case '"':
        if (!this.#takeString()) return undefined;
        if (this.#at - start === 2) return TokenType.EmptyString;
        return this.#body.subarray(start, this.#at).includes("\\")
          ? TokenType.EscapedString
          : TokenType.PlainString;
      case "t":
        return this.#takeWord("true") ? TokenType.True : undefined;
      case "f":
        return this.#takeWord("false") ? TokenType.False : undefined;
      case "n":
        return this.#takeWord("null") ? TokenType.Null : undefined;
      default:
        if (!this.#takeNumber()) return undefined;
        if (digitsOf(this.#body.toString("latin1", start, this.#at)) > numberDigitsMax)
          this.#longNumbers.push(start);
        return TokenType.Number;
    }
  }

  #takeKey(): boolean {
    this.#skipWhiteSpace();
    const start = this.#at;
    if (!this.#takeString()) return false;
    this.#key = this.#body.toString("utf8", start + 1, this.#at - 1);
    const keys = this.#keys.at(-1)!;
    if (this.#key.includes("\\")) this.#escapedKeys.push(start);
    else if (keys.has(this.#key)) this.#doubledKeys.push(start);
    else keys.add(this.#key);
    this.#skipWhiteSpace();
    return this.#take(":");
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function digitsOf(number: string): number {
  return number.replaceAll(/\D/g, "").length;
}
