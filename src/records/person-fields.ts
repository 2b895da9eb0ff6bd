// Merges `$set`, `$set_once` and `$unset` of an event with those in its `properties`. The result is
// in the fields of the record. The objects are joined as text, so that numbers do not lose digits.
// If a name is repeated, the addon then removes all but its last member.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import { extraTypes, type ItemRow, type ItemView, isNothing, typeAt } from "./item-view.ts";
import { Extra, ExtraShift, extraOf, FieldShift, Row, TokenType } from "./table.ts";
import { keepReplaced, type Slice, type Verdict, warningBit } from "./verdict.ts";

/** Merging this number of bytes takes about 7 ms. PostHog's limit for a person is the same. */
export const mergedBytesMax = 524_288;
/** Merging this number of bytes takes at most 2 ms. */
export const namesBytesMax = 65_536;
const punctuationBytes = 3;
const bufferBytesMin = 4_096;

export interface JsonText {
  readonly body: Buffer;
  readonly start: number;
  readonly end: number;
}

/** Writes the plain form of a text. Throws if it has none. */
export type WritePlainForm = (text: JsonText, target: Buffer, at: number) => number;

interface Places {
  readonly top: number;
  readonly nested: number;
}

const topFields = (0xf << FieldShift.Set) | (0xf << FieldShift.SetOnce);
const nestedSets = (0xf << ExtraShift.PropertiesSet) | (0xf << ExtraShift.PropertiesSetOnce);
const nameLists = (0xf << ExtraShift.PropertiesUnset) | (0xf << ExtraShift.Unset);

export function hasPersonFields(item: ItemRow): boolean {
  return hasTopFields(item) || (extraTypes(item) & (nestedSets | nameLists)) !== 0;
}

export function mayNeedMerging(item: ItemRow): boolean {
  const extras = extraTypes(item);
  return (extras & nameLists) !== 0 || ((extras & nestedSets) !== 0 && hasTopFields(item));
}

function hasTopFields({ table, row }: ItemRow): boolean {
  return (table[row + Row.FieldTypes]! & topFields) !== 0;
}

export class PersonFields {
  readonly #writePlainForm: WritePlainForm;
  #joined = Buffer.alloc(0);
  #joinedEnd = 0;
  #merged = Buffer.alloc(0);
  #mergedEnd = 0;

  constructor(writePlainForm: WritePlainForm) {
    this.#writePlainForm = writePlainForm;
  }

  /**
   * Sets the slices of the verdict. They are valid until the next call. Returns false if the result
   * is too large.
   */
  merge(item: ItemView, verdict: Verdict): boolean {
    const { table, row } = item;
    const extra = extraOf(table, row);
    const fields = table[row + Row.FieldTypes]!;
    const extras = extraTypes(item);
    const set = {
      top: objectAt(typeAt(fields, FieldShift.Set), row + Row.SetStart),
      nested: objectAt(typeAt(extras, ExtraShift.PropertiesSet), extra + Extra.PropertiesSetStart),
    };
    const setOnce = {
      top: objectAt(typeAt(fields, FieldShift.SetOnce), row + Row.SetOnceStart),
      nested: objectAt(
        typeAt(extras, ExtraShift.PropertiesSetOnce),
        extra + Extra.PropertiesSetOnceStart,
      ),
    };
    const unset = {
      top: namesAt(typeAt(extras, ExtraShift.Unset), extra + Extra.UnsetStart, verdict),
      nested: namesAt(
        typeAt(extras, ExtraShift.PropertiesUnset),
        extra + Extra.PropertiesUnsetStart,
        verdict,
      ),
    };
    const unsetType = typeAt(extras, ExtraShift.Unset);
    if (unset.top === 0 && !isNothing(unsetType)) {
      const at = extra + Extra.UnsetStart;
      keepReplaced(verdict, "$unset", item.body.subarray(table[at]!, table[at + 1]!));
    }
    this.#mergedEnd = 0;
    return (
      this.#takeObject(item, set, verdict.set) &&
      this.#takeObject(item, setOnce, verdict.setOnce) &&
      this.#takeNames(item, unset, verdict)
    );
  }

  #takeObject({ body, table }: ItemView, { top, nested }: Places, slice: Slice): boolean {
    slice.end = 0;
    if (top === 0 || nested === 0) {
      const span = top + nested;
      if (span === 0) return true;
      slice.bytes = body;
      slice.start = table[span]!;
      slice.end = table[span + 1]!;
      return true;
    }
    const bytes = spanBytes(table, top) + spanBytes(table, nested);
    if (bytes > mergedBytesMax) return false;
    this.#makeRoom(bytes + punctuationBytes);
    this.#joined[0] = Ascii.OpenBrace;
    this.#joinedEnd = 1;
    // The top level is appended last, because the last member of each name counts.
    this.#appendMembers(body, table[nested]!, table[nested + 1]!);
    this.#appendMembers(body, table[top]!, table[top + 1]!);
    this.#joined[this.#joinedEnd++] = Ascii.CloseBrace;
    this.#mergeInto(slice, this.#joinedEnd);
    return true;
  }

  #appendMembers(body: Buffer, start: number, end: number): void {
    let first = start + 1;
    while (body[first]! <= Ascii.Space) first++;
    if (first === end - 1) return;
    if (this.#joinedEnd > 1) this.#joined[this.#joinedEnd++] = Ascii.Comma;
    this.#joinedEnd += body.copy(this.#joined, this.#joinedEnd, first, end - 1);
  }

  #takeNames({ body, table }: ItemView, { top, nested }: Places, verdict: Verdict): boolean {
    const slice = verdict.unset;
    slice.end = 0;
    if (top + nested === 0) return true;
    const bytes = spanBytes(table, top) + spanBytes(table, nested);
    if (bytes > namesBytesMax) return false;
    this.#makeRoom(nameObjectBytesMax(bytes));
    const names = new NameObject(this.#joined);
    if (top !== 0) names.append(body, table[top]!, table[top + 1]!);
    if (nested !== 0) names.append(body, table[nested]!, table[nested + 1]!);
    if (names.hasInvalid) verdict.warnings |= warningBit.invalid_unset;
    this.#mergeInto(slice, names.close());
    slice.end = namesToArray(slice.bytes, slice.start, slice.end);
    return true;
  }

  #mergeInto(slice: Slice, joinedEnd: number): void {
    slice.bytes = this.#merged;
    slice.start = this.#mergedEnd;
    const text = { body: this.#joined, start: 0, end: joinedEnd };
    this.#mergedEnd += this.#writePlainForm(text, this.#merged, this.#mergedEnd);
    slice.end = this.#mergedEnd;
  }

  #makeRoom(bytes: number): void {
    if (this.#joined.length < bytes)
      this.#joined = Buffer.allocUnsafeSlow(Math.max(bytes, bufferBytesMin));
    if (this.#merged.length - this.#mergedEnd >= bytes) return;
    this.#merged = Buffer.allocUnsafeSlow(Math.max(bytes, bufferBytesMin));
    this.#mergedEnd = 0;
  }
}

/** Returns 0 and adds a warning if the value is not a list of names. `null` has no warning. */
function namesAt(type: TokenType, span: number, verdict: Verdict): number {
  if (type === TokenType.Array || type === TokenType.Object) return span;
  if (!isNothing(type)) verdict.warnings |= warningBit.invalid_unset;
  return 0;
}

function objectAt(type: TokenType, span: number): number {
  return type === TokenType.Object ? span : 0;
}

function spanBytes(table: Uint32Array, span: number): number {
  return span === 0 ? 0 : table[span + 1]! - table[span]!;
}

const DIGIT_0 = 0x30;
const valueBytes = 2;

function nameObjectBytesMax(listBytes: number): number {
  return 2 * listBytes + 2;
}

/**
 * Collects lists of names as the keys of one object, because the addon then removes duplicates. The
 * buffer must have enough space.
 */
class NameObject {
  readonly #target: Buffer;
  #end = 1;
  hasInvalid = false;

  constructor(target: Buffer) {
    this.#target = target;
    target[0] = Ascii.OpenBrace;
  }

  append(list: Buffer, start: number, end: number): void {
    let depth = 0;
    let isNameNext = true;
    for (let at = start + 1; at < end - 1; at++) {
      const byte = list[at]!;
      if (byte <= Ascii.Space) continue;
      if (byte === Ascii.Quote) {
        const last = stringLast(list, at);
        if (isNameNext) this.#add(list, at, last + 1);
        at = last;
      } else if (byte === Ascii.Comma) {
        if (depth === 0) isNameNext = true;
        continue;
      } else {
        if (isNameNext) this.hasInvalid = true;
        if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) depth++;
        else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) depth--;
      }
      isNameNext = false;
    }
  }

  close(): number {
    this.#target[this.#end++] = Ascii.CloseBrace;
    return this.#end;
  }

  #add(list: Buffer, start: number, end: number): void {
    if (this.#end > 1) this.#target[this.#end++] = Ascii.Comma;
    for (let at = start; at < end; at++) this.#target[this.#end++] = list[at]!;
    this.#target[this.#end++] = Ascii.Colon;
    this.#target[this.#end++] = DIGIT_0;
  }
}

function namesToArray(object: Buffer, start: number, end: number): number {
  object[start] = Ascii.OpenBracket;
  let at = start + 1;
  for (let read = at; read < end - 1; ) {
    const last = stringLast(object, read);
    while (read <= last) object[at++] = object[read++]!;
    read += valueBytes;
    if (object[read] === Ascii.Comma) object[at++] = object[read++]!;
  }
  object[at++] = Ascii.CloseBracket;
  return at;
}

function stringLast(text: Buffer, at: number): number {
  let last = at + 1;
  while (text[last] !== Ascii.Quote) last += text[last] === Ascii.Backslash ? 2 : 1;
  return last;
}
