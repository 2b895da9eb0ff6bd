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

/** Returns the part of a text that globs read. */
export function globbedText(text: string): string {
  return text.length > globbedCharsMax ? text.slice(0, globbedCharsMax) : text;
}
