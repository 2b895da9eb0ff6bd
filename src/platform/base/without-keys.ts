// Replaces everything in a foreign text that may be a key or another secret by stars, so that the
// text can be shown. The length stays the same, so positions in the text stay valid. The run time
// is linear in the length of the text.

/**
 * Matches keys with a known prefix, such as `phc_`, up to a character that ends them in JSON or in
 * a list.
 */
const byBeginning = /ph[a-z]_[^\s"',}\]&]*/gi;
/**
 * Matches the value after a name of a key. A name with an escaped letter also matches, because the
 * escape may stand for any letter. No two adjacent parts of the pattern match the same character:
 * otherwise a run of backslashes would make the engine try every split.
 */
const byName =
  /((?:(?:key|token|secret|password|authorization)\\*|\\u00[2-7][\da-f][\w$\\]{0,64})["']?\s*[:=][\s[{]*)("(?:[^"\\]|\\[\s\S])*"?[^\s,}\]]*|'[^']*'?[^\s,}\]]*|[^&"']+)/gi;
const longWord = /[\w+/=-]{9,}/g;
/** Maximum length of a word of a language. A longer run of letters may be a key. */
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

/** Returns whether the word mixes letters and digits, or is very long. */
function isLikeKey(word: string): boolean {
  return word.length > wordLengthMax || (/\d/.test(word) && /[A-Za-z]/.test(word));
}
