// A distinct id as clients send it (any JSON value) to the text that is stored: at most 200 characters, no NUL.

import type { Buffer } from "node:buffer";
import { TokenType } from "../scan/table.ts";
import { normaliseJson } from "./normalise.ts";

/** Counted in code points, as PostHog's capture does. */
export const distinctIdCharactersMax = 200;

/** Past this, a value that is no string is cut before it is looked at: 200 characters are kept in any case. */
const wholeValueBytesMax = 4_096;

export interface DistinctIdText {
  /** "" when there is nothing but white space. */
  readonly text: string;
  readonly cut: boolean;
}

/**
 * The stored text of the token body[start, end) of the given type (not Absent, Null or EmptyString). For the tokens the record writer cannot
 * copy: escaped or long strings, and values that are no strings, which become their compact JSON text.
 */
export function distinctIdText(body: Buffer, start: number, end: number, type: TokenType): DistinctIdText {
  const text = textOf(body.toString("utf8", start, keptEnd(start, end, type)), type);
  if (text.trim() === "") return { text: "", cut: false };
  const clean = text.replaceAll("\0", "\ufffd").toWellFormed();
  const kept = firstCharacters(clean, distinctIdCharactersMax);
  return { text: kept, cut: kept.length !== clean.length };
}

function isString(type: TokenType): boolean {
  return type === TokenType.PlainString || type === TokenType.EscapedString;
}

function keptEnd(start: number, end: number, type: TokenType): number {
  return isString(type) ? end : Math.min(end, start + wholeValueBytesMax);
}

function textOf(token: string, type: TokenType): string {
  if (isString(type)) return JSON.parse(token) as string;
  if (type !== TokenType.Object && type !== TokenType.Array) return token;
  return token.length < wholeValueBytesMax ? normaliseJson(token) : withoutWhiteSpace(token);
}

/** The beginning of a JSON text, compacted: what is outside strings and white space goes. */
function withoutWhiteSpace(beginning: string): string {
  return beginning.replace(/"(?:[^"\\]|\\.)*"?|\s+/g, (piece) => (piece.startsWith('"') ? piece : ""));
}

function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  let units = 0;
  for (let characters = 0; characters < count && units < text.length; characters++) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(0, units);
}
