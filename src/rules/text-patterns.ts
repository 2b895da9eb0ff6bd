// Exact texts and globs of a condition.

import { globbedCharsMax } from "./limits.ts";
import { GlobSet } from "./pattern.ts";

export class TextPatterns {
  readonly exact: ReadonlySet<string>;
  readonly globs: readonly string[];
  readonly #set: GlobSet;

  constructor(patterns: readonly string[]) {
    this.exact = new Set(patterns.filter((pattern) => !pattern.includes("*")));
    this.globs = patterns.filter((pattern) => pattern.includes("*"));
    this.#set = new GlobSet(this.globs);
  }

  matches(text: string): boolean {
    if (this.exact.has(text)) return true;
    return this.globs.length > 0 && this.#set.find(globbedText(text)).length > 0;
  }
}

/** Returns the part of a text that globs read: its first characters (code points). */
export function globbedText(text: string): string {
  if (text.length <= globbedCharsMax) return text;
  let end = 0;
  for (let count = 0; count < globbedCharsMax && end < text.length; count++)
    end += text.codePointAt(end)! > 0xffff ? 2 : 1;
  return text.slice(0, end);
}
