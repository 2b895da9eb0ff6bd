// Reads the property writes of an event, such as `$set` and `$unset`. If a key cannot be applied,
// only this key is rejected.

import { Buffer } from "node:buffer";
import { JsonMembers, ValueOddity } from "../../../records/json-members.ts";
import { TokenType } from "../../../records/table.ts";
import type { PropertyText, RejectedReason, Rejection } from "../types.ts";
import type { Span } from "./event-facts.ts";
import { nameBytes, type PlainTexts } from "./plain-texts.ts";

const nameBytesMax = 400;
const eventPropertyBytesMax = 524_288;
const eventPropertiesMax = 1_000;
const quotedLengthMax = 100;

const noBytes = Buffer.alloc(0);
const nothing: readonly PropertyText[] = [];
const noNames: readonly string[] = [];
const noRejections: readonly Rejection[] = [];

interface FieldRejection extends Rejection {
  more: number;
}

interface TwoPlaces {
  readonly field: string;
  readonly top: Span;
  readonly nested: Span;
}

/**
 * Reads the property writes of an event. The caller calls `begin`, reads the fields, and calls
 * `end`. If the maximum size is reached, the remaining fields are rejected.
 */
export class PropertyWritesReader {
  readonly #texts: PlainTexts;
  readonly #members = new JsonMembers(noBytes);
  readonly #rejected = new Map<string, FieldRejection>();
  #bytesRead = 0;
  #membersRead = 0;
  #kept: (readonly PropertyText[])[] = [];
  #bytesLeft: number | undefined = undefined;
  #found = new Map<string, string>();
  #faults: Map<string, RejectedReason> | undefined = undefined;

  constructor(texts: PlainTexts) {
    this.#texts = texts;
  }

  begin(): void {
    if (this.#rejected.size > 0) this.#rejected.clear();
    this.#bytesRead = 0;
    this.#membersRead = 0;
    this.#kept = [];
    this.#bytesLeft = undefined;
  }

  reject(field: string, reason: RejectedReason, detail: string): void {
    const before = this.#rejected.get(field);
    if (before === undefined) this.#rejected.set(field, { reason, detail, more: 0 });
    else before.more++;
  }

  end(): readonly Rejection[] {
    if (this.#rejected.size === 0) return noRejections;
    return Array.from(this.#rejected, ([field, { reason, detail, more }]) => {
      if (more === 0) return { reason, detail };
      return { reason, detail: `${detail} (and ${more} more of ${field})` };
    });
  }

  membersOf(body: Buffer, { field, top, nested }: TwoPlaces): readonly PropertyText[] {
    const hasTop = this.#hasMembers(top, field);
    const hasNested = this.#hasMembers(nested, field) && !(hasTop && isSame(body, top, nested));
    if (!hasTop && !hasNested) return nothing;
    this.#found = new Map();
    this.#faults = undefined;
    if (hasNested) this.#readMembers(body, nested, field);
    if (hasTop) this.#readMembers(body, top, field);
    return this.#takeFound(field);
  }

  namesOf(body: Buffer, { field, top, nested }: TwoPlaces): readonly string[] {
    const hasTop = this.#hasNames(top, field);
    const hasNested = this.#hasNames(nested, field) && !(hasTop && isSame(body, top, nested));
    if (!hasTop && !hasNested) return noNames;
    const names = new Set<string>();
    if (hasTop) this.#readNames(body, top, { field, names });
    if (hasNested) this.#readNames(body, nested, { field, names });
    return [...names];
  }

  #hasMembers({ start, end, type }: Span, field: string): boolean {
    if (type === TokenType.Object) return end - start > 2;
    const isEmptyList = type === TokenType.Array && end - start === 2;
    if (type !== TokenType.Absent && type !== TokenType.Null && !isEmptyList)
      this.reject(field, "invalid_field", `${field} is not an object`);
    return false;
  }

  #hasNames({ start, end, type }: Span, field: string): boolean {
    if (type === TokenType.Array || type === TokenType.Object) return end - start > 2;
    if (type !== TokenType.Absent && type !== TokenType.Null)
      this.reject(field, "invalid_field", `${field} is not a list of names`);
    return false;
  }

  #readMembers(body: Buffer, { start, end }: Span, field: string): void {
    const members = this.#members;
    members.begin(body, start, end);
    while (members.next()) {
      if (!this.#mayRead(field)) return;
      const name = this.#nameOf(body, field, { start: members.nameStart, end: members.nameEnd });
      if (name === undefined) continue;
      const { oddities } = members;
      if ((oddities & ValueOddity.TooDeep) !== 0) this.#addFault(name, "too_deep");
      else if ((oddities & ValueOddity.Number) !== 0) this.#addFault(name, "number_out_of_range");
      else this.#addValue(body, name);
    }
  }

  #mayRead(field: string): boolean {
    if (this.#membersRead === eventPropertiesMax) {
      const detail = `${field}: an event writes at most ${eventPropertiesMax} properties, so later ones are not applied`;
      this.reject(field, "properties_too_large", detail);
      return false;
    }
    this.#membersRead++;
    return true;
  }

  #addValue(body: Buffer, name: string): void {
    const { nameStart, nameEnd, valueStart, valueEnd, oddities } = this.#members;
    this.#bytesRead += nameEnd - nameStart + valueEnd - valueStart;
    const json =
      oddities === 0
        ? this.#texts.textOf(body, valueStart, valueEnd)
        : this.#texts.valueOf(body, valueStart, valueEnd);
    if (json === undefined) {
      this.#addFault(name, "too_deep");
      return;
    }
    this.#faults?.delete(name);
    this.#found.set(name, json);
  }

  #nameOf(
    body: Buffer,
    field: string,
    { start, end }: Pick<Span, "start" | "end">,
  ): string | undefined {
    const name =
      end - start > 6 * nameBytesMax
        ? body.toString("latin1", start, start + nameBytesMax + 1)
        : this.#texts.nameOf(body, start, end);
    if (name.length * 3 <= nameBytesMax || Buffer.byteLength(name) <= nameBytesMax) return name;
    const detail = `${field}: the name ${quoted(name)} has over ${nameBytesMax} bytes`;
    this.reject(field, "name_too_long", detail);
    return undefined;
  }

  #readNames(
    body: Buffer,
    { start, end, type }: Span,
    { field, names }: { readonly field: string; readonly names: Set<string> },
  ): void {
    const members = this.#members;
    members.begin(body, start, end);
    while (members.next()) {
      if (!this.#mayRead(field)) return;
      const { valueType } = members;
      const isObject = type === TokenType.Object;
      if (
        !isObject &&
        valueType !== TokenType.PlainString &&
        valueType !== TokenType.EscapedString &&
        valueType !== TokenType.EmptyString
      ) {
        this.reject(field, "invalid_field", `${field} holds a value that is not a name`);
        continue;
      }
      const name = isObject
        ? this.#nameOf(body, field, { start: members.nameStart, end: members.nameEnd })
        : this.#nameOf(body, field, { start: members.valueStart + 1, end: members.valueEnd - 1 });
      if (name !== undefined) names.add(name);
    }
  }

  #addFault(name: string, reason: RejectedReason): void {
    this.#found.delete(name);
    this.#faults ??= new Map();
    this.#faults.set(name, reason);
  }

  #takeFound(field: string): readonly PropertyText[] {
    for (const [name, reason] of this.#faults ?? [])
      this.reject(field, reason, `${field}: the value of ${quoted(name)} cannot be stored`);
    const found = [...this.#found];
    if (this.#bytesRead > eventPropertyBytesMax) return this.#withinRoom(found, field);
    this.#kept.push(found);
    return found;
  }

  #withinRoom(found: readonly PropertyText[], field: string): readonly PropertyText[] {
    let left =
      this.#bytesLeft ?? eventPropertyBytesMax - sum(this.#kept.flat().map(propertyBytesOf));
    const kept = found.filter((property) => {
      const bytes = propertyBytesOf(property);
      if (bytes > left) {
        const detail = `${field}: no room for ${quoted(property[0])}, which has ${bytes} bytes`;
        this.reject(field, "properties_too_large", detail);
        return false;
      }
      left -= bytes;
      return true;
    });
    this.#bytesLeft = left;
    return kept;
  }
}

function propertyBytesOf([name, json]: PropertyText): number {
  return nameBytes(name) + Buffer.byteLength(json);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function isSame(body: Buffer, one: Span, other: Span): boolean {
  return body.compare(body, one.start, one.end, other.start, other.end) === 0;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, quotedLengthMax).toWellFormed());
}
