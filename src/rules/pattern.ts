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

/** A glob with one `*`. */
interface EndsGlob {
  readonly index: number;
  readonly first: string;
  readonly last: string;
}

const wordBits = 32;
const none: number[] = [];

/** Returns whether a glob has a part between two `*`, which can be anywhere in a text. */
export function hasInnerPart(glob: string): boolean {
  return glob.indexOf("*") !== glob.lastIndexOf("*");
}

/** Returns the number of words of a `GlobSet` with these globs. */
export function wordsOfGlobs(globs: readonly string[]): number {
  const bits = globs.filter(hasInnerPart).reduce((sum, glob) => sum + bitsOf(glob), 0);
  return Math.ceil(bits / wordBits);
}

function bitsOf(glob: string): number {
  return glob.replaceAll("*", "").length + 1;
}

/**
 * Compares a text with many globs in one pass, so that the time does not depend on the text's
 * content. Each glob has a bit for each of its characters, and one for its beginning. A bit is set
 * if the text so far matches the glob up to there (the bit-parallel automaton Shift-And).
 */
export class GlobSet {
  /** Globs whose only `*` separates a beginning from an end. They need no pass. */
  readonly #ends: readonly EndsGlob[];
  /** By bit: the index of the glob that ends there. */
  readonly #indexes = new Map<number, number>();
  readonly #words: number;
  /** The words of the bits that are set at first, that stay set at a `*`, and that end a glob. */
  readonly #initial: Uint32Array;
  readonly #staying: Uint32Array;
  readonly #accepting: Uint32Array;
  /** The number of each character of the globs, from 1 on. */
  readonly #characters = new Map<number, number>();
  readonly #asciiCharacters = new Uint16Array(128);
  /** By number of a character: the words of the bits that it can set. */
  readonly #settable: Uint32Array;
  readonly #state: Uint32Array;

  constructor(globs: readonly string[]) {
    const entries = globs.map((glob, index) => ({ glob, index }));
    this.#ends = entries
      .filter(({ glob }) => !hasInnerPart(glob))
      .map(({ glob, index }) => {
        const [first = "", last = ""] = glob.split("*");
        return { index, first, last };
      });
    const inner = entries.filter(({ glob }) => hasInnerPart(glob));
    const words = wordsOfGlobs(globs);
    this.#words = words;
    this.#initial = new Uint32Array(words);
    this.#staying = new Uint32Array(words);
    this.#accepting = new Uint32Array(words);
    this.#state = new Uint32Array(words);
    const characters = inner.flatMap(({ glob }) => codesOf(glob.replaceAll("*", "")));
    for (const code of characters) {
      if (this.#characters.has(code)) continue;
      this.#characters.set(code, this.#characters.size + 1);
      if (code < this.#asciiCharacters.length) this.#asciiCharacters[code] = this.#characters.size;
    }
    this.#settable = new Uint32Array((this.#characters.size + 1) * words);
    let bit = 0;
    for (const { glob, index } of inner) {
      setBit(this.#initial, bit);
      for (const code of codesOf(glob)) {
        if (code === star) setBit(this.#staying, bit);
        else setBit(this.#settable, ++bit, this.#characters.get(code)! * words);
      }
      setBit(this.#accepting, bit);
      this.#indexes.set(bit, index);
      bit++;
    }
  }

  /** Returns the indexes of the globs that match the whole text. */
  find(text: string): readonly number[] {
    let found = none;
    for (const { index, first, last } of this.#ends) {
      if (!text.startsWith(first) || !text.endsWith(last)) continue;
      if (text.length < first.length + last.length) continue;
      if (found === none) found = [];
      found.push(index);
    }
    return this.#words === 0 ? found : this.#findInner(text, found);
  }

  #findInner(text: string, others: number[]): readonly number[] {
    const words = this.#words;
    const state = this.#state;
    const settable = this.#settable;
    const staying = this.#staying;
    const ascii = this.#asciiCharacters;
    state.set(this.#initial);
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      const character = code < 128 ? ascii[code]! : (this.#characters.get(code) ?? 0);
      const row = character * words;
      let carried = 0;
      for (let word = 0; word < words; word++) {
        const bits = state[word]!;
        state[word] = (((bits << 1) | carried) & settable[row + word]!) | (bits & staying[word]!);
        carried = bits >>> (wordBits - 1);
      }
    }
    let found = others;
    for (let word = 0; word < words; word++)
      for (let bits = state[word]! & this.#accepting[word]!; bits !== 0; bits &= bits - 1) {
        if (found === none) found = [];
        found.push(this.#indexes.get(word * wordBits + (31 - Math.clz32(bits & -bits)))!);
      }
    return found;
  }
}

const star = 0x2a;

function codesOf(text: string): number[] {
  return Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
}

function setBit(words: Uint32Array, bit: number, firstWord = 0): void {
  const at = firstWord + Math.floor(bit / wordBits);
  words[at] = (words[at]! | (1 << (bit % wordBits))) >>> 0;
}
