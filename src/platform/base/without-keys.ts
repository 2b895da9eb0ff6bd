// Replaces possible secrets in a text by stars. The time is linear.

const byBeginning = /ph[a-z]_[^\s"',}\]&]*/gi;
/**
 * Matches the value after a name such as `token`. Adjacent parts of the pattern never match the
 * same character. Otherwise, many backslashes in a row would take exponential time.
 */
const byName =
  /((?:(?:key|token|secret|password|authorization)\\*|\\u00[2-7][\da-f][\w$\\]{0,64})["']?\s*[:=][\s[{]*)("(?:[^"\\]|\\[\s\S])*"?[^\s,}\]]*|'[^']*'?[^\s,}\]]*|[^&"']+)/gi;
const longWord = /[\w+/=-]{9,}/g;
const wordLengthMax = 20;

export function withoutKeys(text: string): string {
  return text
    .replaceAll(byBeginning, stars)
    .replaceAll(byName, (_whole, name: string, value: string) => name + stars(value))
    .replaceAll(longWord, (word) => (isLikeKey(word) ? stars(word) : word));
}

export function stars(text: string): string {
  return "*".repeat(text.length);
}

function isLikeKey(word: string): boolean {
  return word.length > wordLengthMax || (/\d/.test(word) && /[A-Za-z]/.test(word));
}
