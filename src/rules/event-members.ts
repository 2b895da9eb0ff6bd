// The members of one event that the rules name, and the changes to them. Members are found for many
// events in one call of the addon. Each change is visible to the rules after it. `edits` writes all
// changes into the text of the event.

import type { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import {
  Found,
  FoundPath,
  type MemberFunctions,
  MemberLevel,
  MemberPlace,
} from "../records/found-members.ts";
import { extraTypes, type ItemView, typeAt } from "../records/item-view.ts";
import { isEmptyArray } from "../records/property-check.ts";
import { Extra, ExtraShift, extraOf, FieldShift, Row, TokenType } from "../records/table.ts";
import type { CompiledRules } from "./compile.ts";
import type { SchemaMembers } from "./event-schema.ts";
import type { TextEdits } from "./text-edits.ts";

const dollar = 0x24;
const State = { Sent: 0, Removed: 1, Replaced: 2 } as const;

const entriesAtFirst = 2_048;

/** The person fields that an event can have outside of its properties. */
interface TopField {
  type: TokenType;
  start: number;
  end: number;
  isRemoved: boolean;
}

export class EventMembers implements SchemaMembers {
  readonly #findMembers: MemberFunctions["findMembers"];
  readonly #edits: TextEdits;
  #rules!: CompiledRules;
  /** The level of each path, and for the name of an object, the level of its members, else 0. */
  #levelOf: readonly number[] = [];
  #innerLevelOf: readonly number[] = [];
  #levelNames: readonly string[] = [];
  /** The name of each path as JSON. */
  #nameTexts: readonly string[] = [];
  #place = new Uint32Array(MemberPlace.FirstRow + 64);
  #found = new Uint32Array(entriesAtFirst * Found.Words);
  #states = new Uint8Array(entriesAtFirst);
  /** The entry with the same path before an entry, plus 1, or 0. */
  #before = new Uint32Array(entriesAtFirst);
  readonly #texts: string[] = [];
  #entryCount = 0;
  #item!: ItemView;
  #first = 0;
  #end = 0;
  /** The last entry of each path, plus 1. Valid if its stamp is that of the event. */
  #last = new Uint32Array(64);
  #stamps = new Uint32Array(64);
  #stamp = 0;
  /** JSON texts of members that the event does not have, by path. */
  readonly #added = new Map<number, string>();
  readonly #top: readonly TopField[] = [0, 1, 2].map(() => ({
    type: TokenType.Absent,
    start: 0,
    end: 0,
    isRemoved: false,
  }));
  #hasTop = false;
  /** The properties that `keepOnly` has left; undefined before it. */
  #left: readonly number[] | undefined = undefined;
  /** By level: number of removed members, and the last object and its members that are left. */
  #removedIn = new Uint32Array(3);
  #containerStarts = new Uint32Array(3);
  #containerMembers = new Uint32Array(3);

  constructor({ findMembers }: MemberFunctions, edits: TextEdits) {
    this.#findMembers = findMembers;
    this.#edits = edits;
  }

  begin(rules: CompiledRules): void {
    if (this.#rules === rules) return;
    this.#rules = rules;
    const names = rules.pathNames;
    this.#levelNames = ["properties", ...rules.levelNames];
    const levels = this.#levelNames.length;
    this.#removedIn = new Uint32Array(levels);
    this.#containerStarts = new Uint32Array(levels);
    this.#containerMembers = new Uint32Array(levels);
    this.#nameTexts = names.map(({ name }) => JSON.stringify(name));
    this.#levelOf = [0, ...names.map(({ level }) => level)];
    this.#innerLevelOf = [
      0,
      ...names.map(({ level, name }) => (level === 0 ? 1 + rules.levelNames.indexOf(name) : 0)),
    ];
    if (this.#last.length <= names.length) {
      this.#last = new Uint32Array(2 * names.length);
      this.#stamps = new Uint32Array(2 * names.length);
      this.#stamp = 0;
    }
  }

  /** Finds the members of plain items. `rows` are the indexes of their rows, ascending. */
  find(body: Buffer, table: Uint32Array, rows: readonly number[]): void {
    const { names } = this.#rules;
    if (this.#place.length < MemberPlace.FirstRow + rows.length)
      this.#place = new Uint32Array(MemberPlace.FirstRow + 2 * rows.length);
    const place = this.#place;
    place[MemberPlace.RowCount] = rows.length;
    place[MemberPlace.ListsAll] = names.listsAll ? 1 : 0;
    place[MemberPlace.HasPersonPaths] = names.hasPersonPaths ? 1 : 0;
    for (let at = 0; at < rows.length; at++) place[MemberPlace.FirstRow + at] = rows[at]!;
    const count = this.#findMembers(body, table, place, names.text, names.slots, this.#found);
    if (count * Found.Words > this.#found.length) {
      this.#found = new Uint32Array(2 * count * Found.Words);
      this.#states = new Uint8Array(2 * count);
      this.#before = new Uint32Array(2 * count);
      this.#findMembers(body, table, place, names.text, names.slots, this.#found);
    }
    this.#entryCount = count;
    this.#end = 0;
  }

  /** Starts with an event without any members, for rules that read none. */
  openNone(item: ItemView): void {
    this.#item = item;
    this.#stamp++;
    this.#first = this.#end;
    if (this.#added.size > 0) this.#added.clear();
    this.#hasTop = false;
    this.#left = undefined;
  }

  /** Starts with the item of a row. The rows must be opened in the order of `find`. */
  open(item: ItemView, row: number): void {
    this.openNone(item);
    const found = this.#found;
    let entry = this.#end;
    for (; entry < this.#entryCount; entry++) {
      const at = entry * Found.Words;
      if (found[at + Found.Row] !== row) break;
      const path = found[at + Found.Path]!;
      this.#states[entry] = State.Sent;
      if (path === FoundPath.Container || path === FoundPath.Unnamed) continue;
      this.#before[entry] = this.#stamps[path] === this.#stamp ? this.#last[path]! : 0;
      this.#last[path] = entry + 1;
      this.#stamps[path] = this.#stamp;
    }
    this.#end = entry;
  }

  /** Returns the member that a reader of the event sees, plus 1, or 0. */
  entryOf(path: number): number {
    let entry = this.#stamps[path] === this.#stamp ? this.#last[path]! : 0;
    while (entry !== 0 && this.#states[entry - 1] === State.Removed)
      entry = this.#before[entry - 1]!;
    return entry;
  }

  has(path: number): boolean {
    if (this.entryOf(path) !== 0) return true;
    if (this.#added.size > 0 && (this.#added.has(path) || this.#isAddedInside(path))) return true;
    const top = this.#topOf(path);
    return top !== undefined && top.type !== TokenType.Absent && !top.isRemoved;
  }

  /** Returns the JSON text of a member that was changed; undefined if it is as sent. */
  changedText(path: number, entry: number): string | undefined {
    if (entry === 0) return this.#added.get(path);
    return this.#states[entry - 1] === State.Replaced ? this.#texts[entry - 1] : undefined;
  }

  typeOf(entry: number): TokenType {
    return this.#found[(entry - 1) * Found.Words + Found.Type] as TokenType;
  }

  startOf(entry: number): number {
    return this.#found[(entry - 1) * Found.Words + Found.ValueStart]!;
  }

  endOf(entry: number): number {
    return this.#found[(entry - 1) * Found.Words + Found.ValueEnd]!;
  }

  get body(): Buffer {
    return this.#item.body;
  }

  get firstEntry(): number {
    return this.#first + 1;
  }

  get lastEntry(): number {
    return this.#end;
  }

  isProperty(entry: number): boolean {
    const path = this.pathAt(entry);
    return path !== FoundPath.Container && this.#levelOf[path] === MemberLevel.Properties;
  }

  pathAt(entry: number): number {
    return this.#found[(entry - 1) * Found.Words + Found.Path]!;
  }

  hasDollarAt(entry: number): boolean {
    return this.#item.body[this.#nameStart(entry) + 1] === dollar;
  }

  nameAt(entry: number): string {
    const { body } = this.#item;
    const start = this.#nameStart(entry);
    let end = start + 1;
    while (body[end] !== Ascii.Quote) end += body[end] === Ascii.Backslash ? 2 : 1;
    return JSON.parse(body.toString("utf8", start, end + 1)) as string;
  }

  #nameStart(entry: number): number {
    return this.#found[(entry - 1) * Found.Words + Found.Start]!;
  }

  /** Forgets the changes, which have no effect on the text. */
  forget(): void {
    this.#states.fill(State.Sent, this.#first, this.#end);
    this.#added.clear();
  }

  /** Returns the next member with the same path that is not removed, plus 1; 0 at the end. */
  entryBefore(entry: number): number {
    let before = this.#before[entry - 1]!;
    while (before !== 0 && this.#states[before - 1] === State.Removed)
      before = this.#before[before - 1]!;
    return before;
  }

  replace(entry: number, text: string): void {
    this.#states[entry - 1] = State.Replaced;
    this.#texts[entry - 1] = text;
    this.#removeInside(this.#found[(entry - 1) * Found.Words + Found.Path]!);
  }

  add(path: number, text: string): void {
    this.#added.set(path, text);
    this.#removeInside(path);
  }

  isAdded(path: number): boolean {
    return this.#added.has(path);
  }

  remove(path: number): void {
    for (let entry = this.entryOf(path); entry !== 0; entry = this.entryBefore(entry))
      this.#states[entry - 1] = State.Removed;
    this.#added.delete(path);
    const top = this.#topOf(path);
    if (top !== undefined) top.isRemoved = true;
    this.#removeInside(path);
  }

  /** Removes all properties except those for which `isKept`. Returns whether there were others. */
  keepOnly(isKept: (path: number) => boolean, isObserved: boolean): boolean {
    let removes = false;
    const before = this.#left;
    const left: number[] = [];
    const count = before === undefined ? this.#end - this.#first : before.length;
    for (let at = 0; at < count; at++) {
      const entry = before === undefined ? this.#first + at : before[at]!;
      const path = this.#found[entry * Found.Words + Found.Path]!;
      if (path === FoundPath.Container || this.#levelOf[path] !== MemberLevel.Properties) continue;
      if (this.#states[entry] === State.Removed) continue;
      if (isKept(path)) {
        left.push(entry);
        continue;
      }
      if (isObserved) return true;
      removes = true;
      this.#states[entry] = State.Removed;
      this.#removeInside(path);
    }
    if (!isObserved) this.#left = left;
    for (const path of this.#added.keys()) {
      const level = this.#levelOf[path]!;
      const own =
        level === MemberLevel.Properties ? path : this.#rules.pathOf(this.#levelNames[level]!);
      if (isKept(own)) continue;
      if (isObserved) return true;
      removes = true;
      this.#added.delete(path);
    }
    return removes;
  }

  /** Adds the edits of all changes. `nameText` is a new name for an event without one. */
  edit(nameText: string | undefined): void {
    const edits = this.#edits;
    const hasAdded = this.#added.size > 0;
    this.#editMembers();
    let members = nameText === undefined ? "" : `"event":${nameText}`;
    if (hasAdded)
      for (let level = this.#levelNames.length - 1; level >= 0; level--) {
        const member = this.#addTo(level);
        if (member !== "") members = members === "" ? member : `${members},${member}`;
      }
    if (this.#hasTop) {
      for (const top of this.#top)
        if (top.isRemoved && top.type !== TokenType.Absent)
          edits.replace(top.start, top.end, "null");
    }
    if (members === "") return;
    const start = this.#item.table[this.#item.row + Row.ItemStart]! + 1;
    edits.replace(start, start, isBlank(this.#item.body, start) ? members : `${members},`);
  }

  /** Adds the edits of found members, and reads the objects of each level. */
  #editMembers(): void {
    const edits = this.#edits;
    const found = this.#found;
    const removed = this.#removedIn;
    removed.fill(0);
    this.#containerStarts.fill(0);
    for (let entry = this.#first; entry < this.#end; entry++) {
      const at = entry * Found.Words;
      const path = found[at + Found.Path]!;
      const state = this.#states[entry];
      if (path === FoundPath.Container) {
        // The object of the event follows the object of the properties, and has precedence.
        const level = found[at + Found.Type]!;
        this.#containerStarts[level] = found[at + Found.Container]!;
        this.#containerMembers[level] = found[at + Found.Ordinal]! - removed[level]!;
        removed[level] = 0;
      } else if (state === State.Replaced) {
        edits.replace(
          found[at + Found.ValueStart]!,
          found[at + Found.ValueEnd]!,
          this.#texts[entry]!,
        );
      } else if (state === State.Removed) {
        const level = this.#levelOf[path]!;
        const isFirst = removed[level]! === found[at + Found.Ordinal]!;
        removed[level]!++;
        this.#cutMember(found[at + Found.Start]!, found[at + Found.ValueEnd]!, isFirst);
      }
    }
  }

  /** Cuts a member with one comma. `isFirst`: no member is left before it. */
  #cutMember(start: number, end: number, isFirst: boolean): void {
    const { body } = this.#item;
    if (isFirst) {
      let after = end;
      while (body[after]! <= Ascii.Space) after++;
      this.#edits.replace(start, body[after] === Ascii.Comma ? after + 1 : end, "");
    } else {
      let before = start - 1;
      while (body[before] !== Ascii.Comma) before--;
      this.#edits.replace(before, end, "");
    }
  }

  /** Writes the added members of a level, or returns a member of the event with them, or "". */
  #addTo(level: number): string {
    const added = this.#addedTexts(level);
    if (added === "") return "";
    const start = this.#isRemovedWhole(level) ? 0 : this.#containerStarts[level]!;
    if (start !== 0) {
      const comma = this.#containerMembers[level]! > 0 ? "," : "";
      this.#edits.replace(start + 1, start + 1, added + comma);
      return "";
    }
    const object = `{${added}}`;
    const field =
      level === MemberLevel.Properties ? this.#propertiesField() : this.#topFields()[level - 1]!;
    if (field.type === TokenType.Absent) return `"${this.#levelNames[level]}":${object}`;
    if (level !== MemberLevel.Properties) this.#top[level - 1]!.isRemoved = false;
    // The guards reject an event whose properties have another type.
    else if (
      field.type !== TokenType.Null &&
      !isEmptyArray(this.#item.body, field.start, field.end)
    )
      return "";
    this.#edits.replace(field.start, field.end, object);
    return "";
  }

  /** Returns the added members of a level as JSON, or "". */
  #addedTexts(level: number): string {
    let texts = "";
    for (const [path, text] of this.#added) {
      if (this.#levelOf[path] !== level) continue;
      const member = `${this.#nameTexts[path - 1]}:${text}`;
      texts = texts === "" ? member : `${texts},${member}`;
    }
    return texts;
  }

  #propertiesField(): Pick<TopField, "type" | "start" | "end"> {
    const { table, row } = this.#item;
    return {
      type: typeAt(table[row + Row.FieldTypes]!, FieldShift.Properties),
      start: table[row + Row.PropertiesStart]!,
      end: table[row + Row.PropertiesEnd]!,
    };
  }

  /** Whether a rule has removed all objects of the level. */
  #isRemovedWhole(level: number): boolean {
    if (level === MemberLevel.Set || level === MemberLevel.SetOnce)
      return this.#topFields()[level - 1]!.isRemoved;
    return false;
  }

  /** Whether a member was added to the object of a path. */
  #isAddedInside(path: number): boolean {
    const level = this.#innerLevelOf[path]!;
    if (level === 0) return false;
    for (const added of this.#added.keys()) if (this.#levelOf[added] === level) return true;
    return false;
  }

  /** Removes the members of an object that was removed or replaced. */
  #removeInside(path: number): void {
    const level = this.#innerLevelOf[path]!;
    if (level === 0) return;
    for (let entry = this.#first; entry < this.#end; entry++) {
      const path = this.#found[entry * Found.Words + Found.Path]!;
      if (path !== FoundPath.Container && this.#levelOf[path] === level)
        this.#states[entry] = State.Removed;
    }
    for (const path of this.#added.keys())
      if (this.#levelOf[path] === level) this.#added.delete(path);
  }

  /** The fields `$set`, `$set_once` and `$unset` of the event itself, read at the first use. */
  #topFields(): readonly TopField[] {
    if (this.#hasTop) return this.#top;
    const { table, row } = this.#item;
    const fields = table[row + Row.FieldTypes]!;
    const extra = extraOf(table, row);
    this.#hasTop = true;
    this.#readField(0, typeAt(fields, FieldShift.Set), row + Row.SetStart);
    this.#readField(1, typeAt(fields, FieldShift.SetOnce), row + Row.SetOnceStart);
    this.#readField(2, typeAt(extraTypes(this.#item), ExtraShift.Unset), extra + Extra.UnsetStart);
    return this.#top;
  }

  #readField(index: number, type: TokenType, span: number): void {
    const { table } = this.#item;
    const top = this.#top[index]!;
    top.type = type;
    top.start = table[span]!;
    top.end = table[span + 1]!;
    top.isRemoved = false;
  }

  /** Returns the field of the event itself for the paths of whole person fields. */
  #topOf(path: number): TopField | undefined {
    if (path > this.#rules.lastTopPath) return undefined;
    return this.#topFields()[path - 1];
  }
}

/** Returns whether an object is empty. `start` follows its opening brace. */
function isBlank(body: Buffer, start: number): boolean {
  let at = start;
  while (body[at]! <= Ascii.Space) at++;
  return body[at] === Ascii.CloseBrace;
}

/** Returns the value of a JSON text, or undefined for an object or array. */
export function scalarOf(text: string): string | number | boolean | null | undefined {
  const value = JSON.parse(text) as unknown;
  return typeof value === "object" && value !== null
    ? undefined
    : (value as string | number | boolean | null);
}
