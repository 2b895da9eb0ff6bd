// Names and globs. In a glob, `*` matches any number of any characters.

import { globbedCharsMax } from "./limits.ts";

/** The patterns of a condition: exact texts and globs. */
export class TextPatterns {
  readonly exact: ReadonlySet<string>;
  /** The parts of each glob. */
  readonly globs: readonly (readonly string[])[];

  constructor(patterns: readonly string[]) {
    this.exact = new Set(patterns.filter((pattern) => !isGlob(pattern)));
    this.globs = patterns.filter(isGlob).map(partsOf);
  }

  matches(text: string): boolean {
    if (this.exact.has(text)) return true;
    if (this.globs.length === 0) return false;
    const beginning = globbedText(text);
    for (const parts of this.globs) if (matchesParts(parts, beginning)) return true;
    return false;
  }
}

export function isGlob(pattern: string): boolean {
  return pattern.includes("*");
}

/** Returns whether a glob has a part between two `*`, which can be anywhere in a text. */
export function hasInnerPart(pattern: string): boolean {
  return partsOf(pattern).length > 2;
}

/** Returns whether the pattern matches the whole text. */
export function matchesPattern(pattern: string, text: string): boolean {
  return isGlob(pattern) ? matchesParts(partsOf(pattern), text) : pattern === text;
}

/** A character that no pattern has, because it is not a character of Unicode. */
const anyText = "\uffff";

/** Returns whether a pattern matches every text that the other pattern matches. */
export function coversPattern(pattern: string, other: string): boolean {
  return matchesPattern(pattern, other.replaceAll("*", anyText));
}

function partsOf(glob: string): string[] {
  return glob.split("*");
}

function matchesParts(parts: readonly string[], text: string): boolean {
  const first = parts[0]!;
  const last = parts[parts.length - 1]!;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (let index = 1; index < parts.length - 1; index++) {
    const part = parts[index]!;
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at + last.length <= text.length;
}

/** Returns the part of a text that globs read: its first characters (code points). */
function globbedText(text: string): string {
  if (text.length <= globbedCharsMax) return text;
  let end = 0;
  for (let count = 0; count < globbedCharsMax && end < text.length; count++)
    end += text.codePointAt(end)! > 0xffff ? 2 : 1;
  return text.slice(0, end);
}
