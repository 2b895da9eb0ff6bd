// Replaces possible secrets in a foreign text by stars, in linear time. The length of the text does
// not change.

/** Matches keys with a known prefix, such as `phc_`, up to the end of the JSON or list item. */
const byBeginning = /ph[a-z]_[^\s"',}\]&]*/gi;
/**
 * Matches the value after the name of a key. An escape may stand for any letter of the name.
 * Adjacent parts never match the same character. Otherwise, the engine would try every way to split
 * a run of backslashes.
 */
const byName =
  /((?:(?:key|token|secret|password|authorization)\\*|\\u00[2-7][\da-f][\w$\\]{0,64})["']?\s*[:=][\s[{]*)("(?:[^"\\]|\\[\s\S])*"?[^\s,}\]]*|'[^']*'?[^\s,}\]]*|[^&"']+)/gi;
const longWord = /[\w+/=-]{9,}/g;
/** Maximum length of a word. A longer sequence of letters may be a key. */
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
