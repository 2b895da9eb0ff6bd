// Puts stars in place of everything in a stranger's text that may be a key or another secret, so
// that the text can be shown. It stays as long as it was, so places in it stay the same. The work
// is linear in the length of the text.

/**
 * Keys known by their own beginning, such as `phc_`, as far as they may reach: in JSON or in a list
 * another character ends them.
 */
const byBeginning = /ph[a-z]_[^\s"',}\]&]*/gi;
/**
 * The value after a name that keys have. A name with an escaped letter counts as such a name,
 * because the escape may stand for any letter. No two neighbours of the pattern match the same
 * character: in a run of backslashes, a second one would have the engine try every split.
 */
const byName =
  /((?:(?:key|token|secret|password|authorization)\\*|\\u00[2-7][\da-f][\w$\\]{0,64})["']?\s*[:=][\s[{]*)("(?:[^"\\]|\\[\s\S])*"?[^\s,}\]]*|'[^']*'?[^\s,}\]]*|[^&"']+)/gi;
const longWord = /[\w+/=-]{9,}/g;
/** A longer run of such characters is no word of a language. */
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

/** Whether the word mixes letters and digits, or is very long. */
function isLikeKey(word: string): boolean {
  return word.length > wordLengthMax || (/\d/.test(word) && /[A-Za-z]/.test(word));
}
