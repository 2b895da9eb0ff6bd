// The reference scanner's reader: strict JSON, one byte after another, into a shallow tree of
// spans. It must stay easy to believe; speed does not matter, but it takes any depth and never goes
// back.

import { isUtf8 } from "node:buffer";
import { depthMax, numberDigitsMax, TokenType } from "./table.ts";

/** One value of the text: bytes [start, end). */
export interface JsonNode {
  type: TokenType;
  readonly start: number;
  end: number;
  /** Of an object and of an array near the root; values further down are checked and forgotten. */
  readonly children: JsonChild[];
}

export interface JsonChild {
  /** The key as written, without its quotes. Empty in an array. */
  readonly key: string;
  readonly node: JsonNode;
}

export interface JsonTree {
  readonly root: JsonNode;
  /**
   * Offsets of the escapes that stand for U+0000 or for a surrogate without a partner, ascending.
   */
  readonly replaced: readonly number[];
  /** Offsets of the numbers with too many digits, ascending. */
  readonly longNumbers: readonly number[];
  /** The objects and arrays that are too deep even for an item that is the root, ascending. */
  readonly deep: readonly { readonly offset: number; readonly depth: number }[];
}

/** Root, `batch`, item, `properties`: the levels whose children are kept. */
const keptLevels = 4;

const whiteSpace = new Set([..." \t\n\r"].map((character) => character.charCodeAt(0)));
const simpleEscapes = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)));

/** Offset of the first byte of the first malformed UTF-8 sequence, or undefined. */
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
 * Reads a text of valid UTF-8. A number is the offset of the first byte that no valid JSON text has
 * there: the length where the text just ends.
 */
export function parseTree(body: Buffer): JsonTree | number {
  let at = 0;
  const replaced: number[] = [];
  const longNumbers: number[] = [];
  const deep: { offset: number; depth: number }[] = [];

  // The readers below answer false where the byte at `at` is wrong.
  function skipWhiteSpace(): void {
    while (at < body.length && whiteSpace.has(body[at]!)) at += 1;
  }

  function take(character: string): boolean {
    if (body[at] !== character.charCodeAt(0)) return false;
    at += 1;
    return true;
  }

  function takeWord(word: string): boolean {
    return [...word].every(take);
  }

  function takeDigits(): boolean {
    const start = at;
    while (at < body.length && body[at]! >= 0x30 && body[at]! <= 0x39) at += 1;
    return at > start;
  }

  function takeNumber(): boolean {
    take("-");
    if (!take("0") && !takeDigits()) return false;
    if (take(".") && !takeDigits()) return false;
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      return takeDigits();
    }
    return true;
  }

  function takeFourHexDigits(): number | undefined {
    const start = at;
    for (; at < start + 4; at += 1) {
      if (at >= body.length || !/[0-9a-fA-F]/.test(String.fromCharCode(body[at]!)))
        return undefined;
    }
    return Number.parseInt(body.toString("latin1", start, at), 16);
  }

  function takeString(): boolean {
    // Offset of an escaped high surrogate that ends right here, whose partner may follow.
    let high: number | undefined;
    if (!take('"')) return false;
    while (at < body.length) {
      if (body[at]! < 0x20) return false;
      const start = at;
      let unit = -1;
      if (take("\\")) {
        if (take("u")) {
          const code = takeFourHexDigits();
          if (code === undefined) return false;
          unit = code;
        } else if (at < body.length && simpleEscapes.has(body[at]!)) {
          at += 1;
        } else {
          return false;
        }
      } else {
        at += 1;
      }
      const isLow = unit >= 0xdc00 && unit <= 0xdfff;
      if (high !== undefined && !isLow) replaced.push(high);
      if ((high === undefined && isLow) || unit === 0) replaced.push(start);
      high = unit >= 0xd800 && unit <= 0xdbff ? start : undefined;
      if (unit === -1 && body[start] === 0x22) return true;
    }
    return false;
  }

  function takeScalar(): TokenType | undefined {
    const start = at;
    switch (String.fromCharCode(body[at] ?? 0)) {
      case '"':
        if (!takeString()) return undefined;
        if (at - start === 2) return TokenType.EmptyString;
        return body.subarray(start, at).includes("\\")
          ? TokenType.EscapedString
          : TokenType.PlainString;
      case "t":
        return takeWord("true") ? TokenType.True : undefined;
      case "f":
        return takeWord("false") ? TokenType.False : undefined;
      case "n":
        return takeWord("null") ? TokenType.Null : undefined;
      default:
        if (!takeNumber()) return undefined;
        if (body.toString("latin1", start, at).replaceAll(/\D/g, "").length > numberDigitsMax)
          longNumbers.push(start);
        return TokenType.Number;
    }
  }

  function takeKey(): string | undefined {
    skipWhiteSpace();
    const start = at;
    if (!takeString()) return undefined;
    const key = body.toString("utf8", start + 1, at - 1);
    skipWhiteSpace();
    return take(":") ? key : undefined;
  }

  const top: JsonNode = { type: TokenType.Array, start: 0, end: 0, children: [] };
  const open: JsonNode[] = [top];
  let key = "";
  for (;;) {
    // A value is due.
    skipWhiteSpace();
    const node: JsonNode = { type: TokenType.Absent, start: at, end: at, children: [] };
    if (open.length <= keptLevels + 1) open.at(-1)!.children.push({ key, node });
    key = "";
    if (take("{") || take("[")) {
      const isObject = body[node.start] === 0x7b;
      node.type = isObject ? TokenType.Object : TokenType.Array;
      if (open.length > depthMax) deep.push({ offset: node.start, depth: open.length });
      skipWhiteSpace();
      if (!take(isObject ? "}" : "]")) {
        open.push(node);
        if (isObject) {
          const found = takeKey();
          if (found === undefined) return at;
          key = found;
        }
        continue;
      }
    } else {
      const type = takeScalar();
      if (type === undefined) return at;
      node.type = type;
    }
    node.end = at;

    // A value is done.
    for (;;) {
      skipWhiteSpace();
      const container = open.at(-1)!;
      if (container === top) {
        return at === body.length
          ? { root: top.children[0]!.node, replaced, longNumbers, deep }
          : at;
      }
      const isObject = container.type === TokenType.Object;
      if (take(",")) {
        if (isObject) {
          const found = takeKey();
          if (found === undefined) return at;
          key = found;
        }
        break;
      }
      if (!take(isObject ? "}" : "]")) return at;
      container.end = at;
      open.pop();
    }
  }
}
