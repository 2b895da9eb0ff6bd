// Names and globs. In a glob, `*` matches any number of any characters.

/** Returns whether the pattern matches the whole text. The time is at most the product of the lengths. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  if (others.length === 0) return pattern === text;
  if (!text.startsWith(first)) return false;
  const last = others.pop()!;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

/** A character that no pattern has, because it is not a character of Unicode. */
const anyText = "\uffff";

/** Returns whether a pattern matches every text that the other pattern matches. */
export function coversPattern(pattern: string, other: string): boolean {
  return matchesPattern(pattern, other.replaceAll("*", anyText));
}
