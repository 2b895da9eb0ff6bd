// Puts stars in place of whatever may be a key or another secret in a stranger's text, so that it
// can be shown. The text stays as long as it was, so places in it stay the same. The work is linear
// in the text.

/**
 * By their own beginning, as far as they may go: in JSON or in a list another character ends them.
 */
const byBeginning = /ph[a-z]_[^\s"',}\]&]*/gi;
/** Whatever follows a name that keys have, or one with an escaped letter, which may be any. */
const byName =
  /((?:key|token|secret|password|authorization|\\u00[2-7][\da-f][\w$\\]{0,64})\\*["']?\s*[:=][\s[{]*)("(?:[^"\\]|\\[\s\S])*"?[^\s,}\]]*|'[^']*'?[^\s,}\]]*|[^&"']+)/gi;
const longWord = /[\w+/=-]{9,}/g;
/** What is longer is no word of a language. */
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

/** Letters and digits mixed, or very long. */
function isLikeKey(word: string): boolean {
  return word.length > wordLengthMax || (/\d/.test(word) && /[A-Za-z]/.test(word));
}
