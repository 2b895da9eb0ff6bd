// A distinct id as clients send it (any JSON value) to the text that is stored: at most 200 characters, no NUL.

import type { Buffer } from "node:buffer";
import { TokenType } from "../scan/table.ts";
import { normaliseJson } from "./normalise.ts";

/** Counted in code points, as PostHog's capture does. */
export const distinctIdCharactersMax = 200;

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
  const token = body.toString("utf8", start, end);
  const text = textOf(token, type);
  if (text.trim() === "") return { text: "", cut: false };
  const clean = text.replaceAll("\0", "\ufffd").toWellFormed();
  const kept = firstCharacters(clean, distinctIdCharactersMax);
  return { text: kept, cut: kept.length !== clean.length };
}

function textOf(token: string, type: TokenType): string {
  if (type === TokenType.PlainString || type === TokenType.EscapedString) return JSON.parse(token) as string;
  if (type === TokenType.Object || type === TokenType.Array) return normaliseJson(token);
  return token;
}

function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  let units = 0;
  for (let characters = 0; characters < count && units < text.length; characters++) {
    units += (text.codePointAt(units) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(0, units);
}
