// Exact texts and globs of a condition.

import { matchesPattern } from "./pattern.ts";

export class TextPatterns {
  readonly exact: ReadonlySet<string>;
  readonly #globs: readonly string[];

  constructor(patterns: readonly string[]) {
    this.exact = new Set(patterns.filter((pattern) => !pattern.includes("*")));
    this.#globs = patterns.filter((pattern) => pattern.includes("*"));
  }

  get hasGlobs(): boolean {
    return this.#globs.length > 0;
  }

  matches(text: string): boolean {
    return this.exact.has(text) || this.#globs.some((glob) => matchesPattern(glob, text));
  }
}
