// The checks of schemas, by which the addon decides whether the properties of an event pass. The C++
// side (addon/schema_checks.h) has the same numbers. Loading the addon compares both. All offsets
// are words from the beginning of the checks of a project, and 0 is no offset.

import { Buffer } from "node:buffer";
import type { TokenType } from "./table.ts";

/** The words of a schema. The slots of its properties follow, a hash table by their paths. */
const SchemaWord = {
  /** Number of required properties. */
  Required: 0,
  /** The check of properties that the schema does not name, or a value of OtherProperties. */
  Other: 1,
  /** The binary logarithm of the number of slots. At least one slot is free. */
  SlotBits: 2,
  Words: 3,
} as const;

const OtherProperties = { Any: 0, None: 0xffff_ffff } as const;

const PropertySlot = {
  /** 0 in a free slot. */
  Path: 0,
  /** 1 if the property is required. */
  Required: 1,
  /** The check of the value, or 0 if no value passes for sure. */
  Value: 2,
  Words: 3,
} as const;

const ValueWord = {
  /** A bit for each TokenType of which every value passes. */
  Types: 0,
  /** The check of numbers, or 0 if none passes for sure. */
  Number: 1,
  /** The check of strings without escapes, or 0 if none passes for sure. */
  Text: 2,
  Words: 3,
} as const;

/** A bound is a double in two words. Ascending doubles follow, if only these pass. */
const NumberWord = {
  /** 1 if the number must be an integer. */
  Integer: 0,
  Minimum: 1,
  Maximum: 3,
  Above: 5,
  Below: 7,
  Values: 9,
  Words: 10,
} as const;

/** The spans of texts follow, if only these pass, and then the steps of a pattern. */
const TextWord = {
  CharactersMin: 0,
  CharactersMax: 1,
  BytesMax: 2,
  /** Number of texts, by ascending length and then bytes. */
  Spans: 3,
  Steps: 4,
  /** 1 if the text ends after the last step. */
  HasEnd: 5,
  Words: 6,
} as const;

/** The offset of the first word of a text in UTF-8, and its number of bytes. */
const TextSpan = { Start: 0, Bytes: 1, Words: 2 } as const;

/** Bytes that must follow, and then characters of a set. */
const PatternStep = {
  Text: 0,
  /** A bit for each ASCII character. */
  Set: 2,
  /** Numbers of characters. */
  Min: 6,
  Max: 7,
  /** A value of OtherCharacters. */
  Others: 8,
  Words: 9,
} as const;

/** The characters of a set beyond ASCII. If there are some, the addon is not sure of these. */
export const OtherCharacters = { None: 0, All: 1, Some: 2 } as const;
type OtherCharacters = (typeof OtherCharacters)[keyof typeof OtherCharacters];

/** Words of 0 after the checks, so that one comparison shows that the first words of a check exist. */
const CheckPadding = { Words: 10 } as const;

interface SchemaChecks {
  readonly properties: readonly PropertyCheck[];
  /** The check of other properties: false if there must be none, undefined for any. */
  readonly other: ValueCheck | false | undefined;
}

interface PropertyCheck {
  readonly path: number;
  readonly isRequired: boolean;
  /** Undefined if no value passes for sure. */
  readonly value: ValueCheck | undefined;
}

export interface ValueCheck {
  /** The tokens of which every value passes. */
  readonly tokens: readonly TokenType[];
  /** For other numbers and strings. Undefined if none passes for sure. */
  readonly number: NumberCheck | undefined;
  readonly text: TextCheck | undefined;
}

/** An absent bound is NaN. */
export interface NumberCheck {
  readonly isInteger: boolean;
  readonly minimum: number;
  readonly maximum: number;
  readonly above: number;
  readonly below: number;
  /** If it is set, one number or more. */
  readonly values: readonly number[] | undefined;
}

export interface TextCheck {
  readonly charactersMin: number;
  readonly charactersMax: number;
  readonly bytesMax: number;
  /** If it is set, one text or more. */
  readonly texts: readonly string[] | undefined;
  readonly steps: readonly TextStep[];
  readonly hasEnd: boolean;
}

export interface TextStep {
  readonly text: string;
  /** A bit for each ASCII character of a set, in four words. */
  readonly ascii: readonly number[];
  readonly others: OtherCharacters;
  readonly min: number;
  readonly max: number;
}

const wordMax = 0xffff_ffff;

/** Writes the checks of the schemas of a project. */
export class SchemaCheckWriter {
  /** The first word is not used, because 0 is no offset. */
  readonly #words: number[] = [0];
  readonly #values = new Map<ValueCheck, number>();

  /** The checks of all schemas. */
  get words(): readonly number[] {
    return [...this.#words, ...new Array<number>(CheckPadding.Words).fill(0)];
  }

  /** Adds the checks of a schema. Each path is there once. Returns their offset. */
  add({ properties, other }: SchemaChecks): number {
    const slotBits = 32 - Math.clz32(2 * properties.length);
    const slots: number[] = new Array(2 ** slotBits * PropertySlot.Words).fill(0);
    for (const { path, isRequired, value } of properties) {
      let slot = propertySlot(path, slotBits);
      while (slots[slot * PropertySlot.Words + PropertySlot.Path] !== 0)
        slot = (slot + 1) % 2 ** slotBits;
      const at = slot * PropertySlot.Words;
      slots[at + PropertySlot.Path] = path;
      slots[at + PropertySlot.Required] = Number(isRequired);
      slots[at + PropertySlot.Value] = value === undefined ? 0 : this.#addValue(value);
    }
    const required = properties.filter(({ isRequired }) => isRequired).length;
    return this.#addWords([required, this.#addOther(other), slotBits, ...slots]);
  }

  #addOther(other: SchemaChecks["other"]): number {
    if (other === undefined) return OtherProperties.Any;
    return other === false ? OtherProperties.None : this.#addValue(other);
  }

  #addValue(value: ValueCheck): number {
    const known = this.#values.get(value);
    if (known !== undefined) return known;
    const { tokens, number, text } = value;
    const offset = this.#addWords([
      tokens.reduce<number>((bits, token) => bits | (1 << token), 0),
      number === undefined ? 0 : this.#addNumber(number),
      text === undefined ? 0 : this.#addText(text),
    ]);
    this.#values.set(value, offset);
    return offset;
  }

  #addNumber({ isInteger, minimum, maximum, above, below, values = [] }: NumberCheck): number {
    return this.#addWords([
      Number(isInteger),
      ...wordsOf(Float64Array.of(minimum, maximum, above, below)),
      values.length,
      ...wordsOf(Float64Array.from(values).sort()),
    ]);
  }

  #addText(check: TextCheck): number {
    const { charactersMin, charactersMax, bytesMax, texts = [], steps, hasEnd } = check;
    const spans = texts
      .map((text) => Buffer.from(text))
      .sort((one, other) => one.length - other.length || one.compare(other))
      .flatMap((text) => this.#addBytes(text));
    const stepWords = steps.flatMap(({ text, ascii, others, min, max }) => [
      ...(text === "" ? [0, 0] : this.#addBytes(Buffer.from(text))),
      ...ascii,
      min,
      Math.min(max, wordMax),
      others,
    ]);
    return this.#addWords([
      Math.min(charactersMin, wordMax),
      Math.min(charactersMax, wordMax),
      Math.min(bytesMax, wordMax),
      texts.length,
      steps.length,
      Number(hasEnd),
      ...spans,
      ...stepWords,
    ]);
  }

  /** Returns the words of TextSpan. */
  #addBytes(bytes: Buffer): number[] {
    const padded = new Uint8Array(4 * Math.ceil(bytes.length / 4));
    padded.set(bytes);
    return [this.#addWords(wordsOf(padded)), bytes.length];
  }

  #addWords(words: Iterable<number>): number {
    const offset = this.#words.length;
    for (const word of words) this.#words.push(word);
    return offset;
  }
}

function wordsOf({ buffer }: Float64Array<ArrayBuffer> | Uint8Array<ArrayBuffer>): Uint32Array {
  return new Uint32Array(buffer);
}

/** Returns the first slot of a path, like property_slot in addon/schema_checks.h. */
function propertySlot(path: number, slotBits: number): number {
  return slotBits === 0 ? 0 : Math.imul(path, 0x9e37_79b1) >>> (32 - slotBits);
}

/** The numbers that the addon has as well. */
export const checkLayout = {
  SchemaWord,
  OtherProperties,
  PropertySlot,
  ValueWord,
  NumberWord,
  TextWord,
  TextSpan,
  PatternStep,
  OtherCharacters,
  CheckPadding,
  /** Slots of samples. They differ if the addon has another hash function. */
  SlotSample: { Small: propertySlot(5, 3), Large: propertySlot(40_000, 10) },
} as const;
