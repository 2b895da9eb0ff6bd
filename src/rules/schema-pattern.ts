// The patterns of schemas: a part of JavaScript's regular expressions in which no value can take
// long. A pattern is `^`, then characters and classes with an optional repetition, then perhaps
// `$`. What may follow a repetition must differ from what it repeats. So the next character alone
// decides whether the repetition goes on, and the engine has nothing to try again: the time is
// linear. There are no groups and no `|`.

import { OtherCharacters, type TextStep } from "../records/schema-checks.ts";

/** Maximum bytes of a string that is compared with a pattern. A longer string does not match. */
export const patternBytesMax = 4_096;
/** Maximum of a repetition, as in `{1,200}`. */
const patternRepeatMax = 1_000;

export type TextTest = (text: string) => boolean;

/** Returns the test of a pattern that `patternError` accepts. */
export function compilePattern(pattern: string): TextTest {
  const expression = new RegExp(pattern, "u");
  return (text) => expression.test(text);
}

const asciiCharacters = 128;

/**
 * Returns the steps of a pattern that `patternError` accepts, for the addon. They do not decide
 * about a character that is not ASCII if the set has only some of these.
 */
export function stepsOfPattern(pattern: string): readonly TextStep[] {
  const steps: TextStep[] = [];
  let text = "";
  for (const { set, min, max } of partsOf(pattern) as Part[]) {
    const [first, last] = set.length === 1 ? set[0]! : [0, lastCodePoint];
    if (min === 1 && max === 1 && first === last && first < asciiCharacters) {
      // Comparing a text is faster than a set of one character after another.
      text += String.fromCharCode(first);
      continue;
    }
    steps.push({ text, ascii: asciiOf(set), others: othersOf(set), min, max });
    text = "";
  }
  if (text !== "")
    steps.push({ text, ascii: asciiOf([]), others: OtherCharacters.None, min: 0, max: 0 });
  return steps;
}

/** Returns a bit for each ASCII character of a set, in four words. */
function asciiOf(set: CharacterSet): readonly number[] {
  const words = [0, 0, 0, 0];
  for (const [first, last] of set)
    for (let code = first; code <= last && code < asciiCharacters; code++)
      words[code >>> 5]! |= 1 << (code & 31);
  return words;
}

function othersOf(set: CharacterSet): TextStep["others"] {
  const [first, last] = set.at(-1) ?? [0, 0];
  if (last < asciiCharacters) return OtherCharacters.None;
  return first <= asciiCharacters && last === lastCodePoint
    ? OtherCharacters.All
    : OtherCharacters.Some;
}

/** Returns why a pattern cannot be used; undefined if it can. */
export function patternError(pattern: string): string | undefined {
  try {
    new RegExp(pattern, "u");
  } catch (error) {
    return (error as Error).message.replace(/^Invalid regular expression: \/.*\/u: /s, "");
  }
  const parts = partsOf(pattern);
  return typeof parts === "string" ? parts : ambiguityIn(parts);
}

interface Part {
  readonly text: string;
  readonly set: CharacterSet;
  readonly min: number;
  readonly max: number;
}

/** Sorted, disjoint ranges of code points, both ends inclusive. */
type CharacterSet = readonly (readonly [first: number, last: number])[];

const lastCodePoint = 0x10_ffff;
/** A class, an escape or a character, and then its repetition. */
const partForm = /(\[(?:\\[\s\S]|[^\]\\])*\]|\\[\s\S]|[^\\[\]])([*+?]|\{\d+(?:,\d*)?\})?(\??)/uy;

/** Returns whether a text that matches the pattern has nothing after it. */
export function hasEndOf(pattern: string): boolean {
  return /(?<!\\)(?:\\\\)*\$$/.test(pattern);
}

/** Splits a pattern that is valid in JavaScript into its parts. Returns an error as text. */
function partsOf(pattern: string): Part[] | string {
  if (!pattern.startsWith("^")) return "a pattern must begin with ^";
  const hasEnd = hasEndOf(pattern);
  const end = hasEnd ? pattern.length - 1 : pattern.length;
  const parts: Part[] = [];
  partForm.lastIndex = 1;
  for (let at = 1; at < end; at = partForm.lastIndex) {
    const found = partForm.exec(pattern);
    if (found === null) return `the part at character ${at + 1} is not supported`;
    const [text, atom, repetition = "", lazy] = found;
    if (/[()|]/.test(atom![0]!))
      return `${atom![0]} is not supported: groups and | are not allowed`;
    if (/[\^$]/.test(atom!) && atom!.length === 1)
      return `${atom} is allowed only at the ${atom === "^" ? "beginning" : "end"}`;
    if (lazy !== "") return `${text} is not supported: write it without the last ?`;
    const set = setOf(atom!);
    if (typeof set === "string") return set;
    const { min, max } = boundsOf(repetition);
    if (Math.max(min, Number.isFinite(max) ? max : 0) > patternRepeatMax)
      return `the repetition ${repetition} exceeds the maximum of ${patternRepeatMax}`;
    parts.push({ text: text!, set, min, max });
  }
  return parts;
}

function boundsOf(repetition: string): { min: number; max: number } {
  if (repetition === "") return { min: 1, max: 1 };
  if (repetition === "?") return { min: 0, max: 1 };
  if (repetition === "*") return { min: 0, max: Number.POSITIVE_INFINITY };
  if (repetition === "+") return { min: 1, max: Number.POSITIVE_INFINITY };
  const [least, most] = repetition.slice(1, -1).split(",");
  const min = Number(least);
  if (most === undefined) return { min, max: min };
  return { min, max: most === "" ? Number.POSITIVE_INFINITY : Number(most) };
}

/** Finds a repetition after which the same character can be matched in two ways. */
function ambiguityIn(parts: readonly Part[]): string | undefined {
  for (const [at, part] of parts.entries()) {
    if (part.min === part.max) continue;
    for (const next of parts.slice(at + 1)) {
      if (intersects(part.set, next.set))
        return `${part.text} and ${next.text} can match the same character, which can take long: use characters after ${part.text} that it does not match`;
      if (next.min > 0) break;
    }
  }
  return undefined;
}

const digits: CharacterSet = [[0x30, 0x39]];
const words: CharacterSet = [...digits, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
/** The white space of JavaScript. */
const spaces: CharacterSet = [
  ...([
    [0x09, 0x0d],
    [0x20, 0x20],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
  ] as const),
  ...([
    [0x2028, 0x2029],
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
  ] as const),
  [0xfeff, 0xfeff],
];
const lineEnds: CharacterSet = [
  ...([
    [0x0a, 0x0a],
    [0x0d, 0x0d],
    [0x2028, 0x2029],
  ] as const),
];
const classes: ReadonlyMap<string, CharacterSet> = new Map([
  ["d", digits],
  ["w", words],
  ["s", spaces],
  ["D", inverse(digits)],
  ["W", inverse(words)],
  ["S", inverse(spaces)],
]);
const controls: ReadonlyMap<string, number> = new Map([
  ["t", 0x09],
  ["n", 0x0a],
  ["r", 0x0d],
]);

/** Returns the characters of an atom. Returns an error as text. */
function setOf(atom: string): CharacterSet | string {
  if (atom === ".") return inverse(lineEnds);
  if (!atom.startsWith("[")) return memberSet(atom);
  const isInverse = atom.startsWith("[^");
  const members = atom.slice(isInverse ? 2 : 1, -1).match(/\\[\s\S]|[^\\]/gu) ?? [];
  const ranges: (readonly [number, number])[] = [];
  for (let at = 0; at < members.length; at++) {
    const first = memberSet(members[at]!);
    if (typeof first === "string") return first;
    if (members[at + 1] !== "-" || at + 2 >= members.length) {
      ranges.push(...first);
      continue;
    }
    const last = memberSet(members[at + 2]!);
    if (typeof last === "string") return last;
    ranges.push([first[0]![0], last[0]![0]]);
    at += 2;
  }
  const set = united(ranges);
  return isInverse ? inverse(set) : set;
}

/** Returns the characters of one character or escape. */
function memberSet(member: string): CharacterSet | string {
  if (!member.startsWith("\\")) return only(member.codePointAt(0)!);
  const letter = member.slice(1);
  const named = classes.get(letter);
  if (named !== undefined) return named;
  const control = controls.get(letter);
  if (control !== undefined) return only(control);
  if (/[\da-z]/i.test(letter)) return `the escape ${member} is not supported`;
  return only(letter.codePointAt(0)!);
}

function only(code: number): CharacterSet {
  return [[code, code]];
}

function united(ranges: CharacterSet): CharacterSet {
  const result: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((one, other) => one[0] - other[0])) {
    const before = result.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else result.push([first, last]);
  }
  return result;
}

function inverse(set: CharacterSet): CharacterSet {
  const result: [number, number][] = [];
  let next = 0;
  for (const [first, last] of set) {
    if (first > next) result.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= lastCodePoint) result.push([next, lastCodePoint]);
  return result;
}

function intersects(one: CharacterSet, other: CharacterSet): boolean {
  return one.some(([first, last]) => other.some((range) => first <= range[1] && range[0] <= last));
}
